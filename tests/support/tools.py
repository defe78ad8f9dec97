"""The tools of others that the tests ask; a test is skipped where its tool is absent."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

__all__ = ["RunClang", "RunTool", "require_tool", "run_clang", "run_tool", "system_programs"]

_KERNEL = "__attribute__((global)) void kernel() {}\n"


class RunTool(Protocol):
    """Runs a tool, which has to succeed, and returns its standard output."""

    def __call__(self, command: Sequence[str | Path], *, is_silent: bool = False) -> str:
        """Run ``command``; with ``is_silent``, no standard error is accepted either."""


class RunClang(Protocol):
    """Compiles HIP for the device alone, and returns how that ended."""

    def __call__(self, arguments: Sequence[str | Path], source: str = _KERNEL) -> subprocess.CompletedProcess[str]:
        """Compile ``source``, by default one with an empty kernel."""


@pytest.fixture(scope="session")
def run_tool() -> RunTool:
    """Return a function that runs a tool and returns its output, skipping where the tool is absent."""

    def run(command: Sequence[str | Path], *, is_silent: bool = False) -> str:
        if shutil.which(command[0]) is None:
            pytest.skip(f"no {command[0]}; scripts/install-debian-packages.sh installs it")
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not (is_silent and done.stderr), done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str, str], None]:
    """Return a function that skips the test where a tool, of a Debian package, is absent."""

    def require(tool: str, package: str) -> None:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} (Debian package {package})")

    return require


@pytest.fixture(scope="session")
def run_clang() -> RunClang:
    """Return a function that compiles a kernel for the device alone, with the newest clang."""
    found = [path for version in range(40, 21, -1) if (path := shutil.which(f"clang-{version}"))]
    if not found:
        pytest.skip("no clang 22 or newer (Debian package clang-22)")

    def run(arguments: Sequence[str | Path], source: str = _KERNEL) -> subprocess.CompletedProcess[str]:
        command = [found[0], "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", *arguments, "-"]
        return subprocess.run(command, input=source, capture_output=True, text=True, check=False)

    return run


def system_programs(folder: Path, *, without: Collection[str]) -> Path:
    """Fill a new folder for PATH with links to the system's programs, those ``without`` left out; return it."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in os.scandir(place):
            if program.name not in without and not os.path.lexists(folder / program.name):
                (folder / program.name).symlink_to(program.path)
    return folder
