"""``rocwheel torch init`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def test_init_prints_a_module(tmp_path: Path) -> None:
    made = rocwheel("torch", "init", "--sdk-version", "7.14.0", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    compile(made.stdout, "_rocm_init.py", "exec")
    assert r"7\.14(\.0)*" in made.stdout
    assert "fail_on_version_mismatch=True" in made.stdout


def test_init_prints_a_module_that_only_warns(tmp_path: Path) -> None:
    made = rocwheel("torch", "init", "--sdk-version", "7.14.0", "--mismatch", "warn", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert "fail_on_version_mismatch=False" in made.stdout
