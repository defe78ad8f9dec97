"""Tests of `rocwheel.core.python`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.python import module_command

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("planted", ["pip.py", "runpy.py", "importlib.py", "pip/__main__.py"])
def test_modules_in_the_working_directory_are_not_run(tmp_path: Path, planted: str) -> None:
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).write_text("open('ran', 'w'); raise SystemExit(7)")
    (tmp_path / planted).with_name("__init__.py").touch()
    done = subprocess.run(
        [*module_command(sys.executable, "pip"), "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("pip ")
    assert not (tmp_path / "ran").exists()


def test_a_module_receives_its_arguments_and_returns_its_exit_status() -> None:
    words = [*module_command(sys.executable, "json.tool"), "no such file"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no such file" in done.stderr
