"""Tests of the measures of the code."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_local_imports_count_as_cycles_but_type_checking_imports_do_not(tmp_path: Path) -> None:
    # Given a circle by a function's import, and one that only a type checker sees
    package = tmp_path / "demo"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from demo import b\n")
    (package / "b.py").write_text("def late():\n    from demo import a\n    return a\n")
    (package / "c.py").write_text("from demo import d\n")
    (package / "d.py").write_text("if TYPE_CHECKING:\n    from demo import c\n")
    command = [sys.executable, str(ROOT / "scripts/measure_code.py"), str(package)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measures = {line[:42].strip(): line[43:] for line in printed.splitlines()}
    assert measures["modules in circles"] == "2"
    assert measures["modules that are not empty"] == "4"
    assert measures["share of import lines"] == "57.1%"
