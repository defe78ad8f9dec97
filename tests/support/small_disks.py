"""Programs whose folder is a disk of its own: a small one that fills up, or one that can't be written."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["needs_disks", "run_on_disk"]

_MOUNT = 'mount -t tmpfs -o "$1" rocwheel "$2" && shift 2 && exec "$@"'


def _can_mount() -> bool:
    return os.geteuid() == 0 and bool(shutil.which("unshare")) and not subprocess.call(["unshare", "--mount", "true"])


needs_disks = pytest.mark.skipif(not _can_mount(), reason="mounts take root and the right to unshare")


def run_on_disk(
    folder: Path, options: str, command: Sequence[str | Path], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that sees an empty disk at ``folder``, such as ``ro`` or ``size=1m``, which goes with it."""
    words = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", options, folder, *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **variables})
