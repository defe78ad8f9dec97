"""``rocwheel torch requirements`` as a user runs it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "requirement"),
    [
        ([], "rocm[libraries,device]==7.14.0"),
        (["--lock", "minor", "gfx942", "gfx1100"], "rocm[libraries,device-gfx942,device-gfx1100]==7.14.*"),
    ],
    ids=["exact", "minor"],
)
def test_a_shell_takes_the_requirements(options: list[str], requirement: str, tmp_path: Path) -> None:
    made = rocwheel("torch", "requirements", "--sdk-version", "7.14.0", *options, cwd=tmp_path)
    script = f'export {made.stdout.strip()}; printf %s "$PYTORCH_EXTRA_INSTALL_REQUIREMENTS"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == requirement


def test_unknown_targets_are_named(tmp_path: Path) -> None:
    failed = rocwheel("torch", "requirements", "--sdk-version", "7.14.0", "gfx9999", cwd=tmp_path)
    assert failed.returncode == 2
    assert "gfx9999" in failed.stderr
