"""The tools of others that the tests ask, each skipping its tests where it is absent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence

import pytest

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
_KERNEL = "__attribute__((global)) void kernel() {}\n"


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str, str], None]:
    """Give a function that skips the test where a tool, of a Debian package, is absent."""

    def require(tool: str, package: str) -> None:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} (Debian package {package})")

    return require


@pytest.fixture(scope="session")
def run_clang() -> Run:
    """Give a function that compiles a kernel for the device alone, with the newest clang."""
    found = [path for version in range(40, 21, -1) if (path := shutil.which(f"clang-{version}"))]
    if not found:
        pytest.skip("no clang 22 or newer (Debian package clang-22)")

    def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [found[0], "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", *arguments, "-"]
        return subprocess.run(command, input=_KERNEL, capture_output=True, text=True, check=False)

    return run
