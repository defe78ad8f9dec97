"""Python programs in a process of their own: as another user, or with a limit on memory or on the size of files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NOBODY", "needs_root", "run_python"]

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody or mount a small disk")


def run_python(
    program: str,
    *arguments: str | Path,
    user: int | None = None,
    file_size: int | None = None,
    memory: int | None = None,
) -> str:
    """Run a program in a child and return what it prints: as another user, or with limits in bytes.

    ``file_size`` limits files, and ``memory`` the addresses that the process may have.
    """
    limits = {resource.RLIMIT_FSIZE: file_size, resource.RLIMIT_AS: memory}

    def limit() -> None:
        for kind, size in limits.items():
            if size:
                resource.setrlimit(kind, (size, size))

    command = [sys.executable, "-B", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, user=user, preexec_fn=limit)
    return done.stdout
