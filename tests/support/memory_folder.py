"""A folder in memory, for work that writes much and keeps nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["memory_folder"]

_MEMORY = Path("/dev/shm")


@contextmanager
def memory_folder(prefix: str) -> Iterator[Path]:
    """Make a folder, on a disk where none can be in memory, and remove it in the end with whatever is in it."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
