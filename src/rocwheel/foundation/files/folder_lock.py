"""One process at a time in a folder that several may write.

The lock (flock(2)) is on the folder itself: it leaves no file, and goes with the process however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import WorkError, write_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["PATIENCE", "locked_folder"]

PATIENCE = 600.0
"""Seconds that a process waits for another."""
_PAUSE = 0.1
_HELD = (errno.EWOULDBLOCK, errno.EACCES)

logger = logging.getLogger(__name__)


@contextmanager
def locked_folder(folder: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Make a folder if it is not there, and hold its lock during the block; afterwards an empty one is removed.

    A process that finds it locked says so in a warning, and waits. Where the file system has no locks, as some of
    networks, or the folder can't be opened, a warning says that nothing keeps others out. Raises `WorkError` when the
    folder can't be made, or is still locked after ``patience`` seconds.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(folder, time.monotonic() + patience)
    except OSError as e:
        raise write_error(folder, e) from e
    try:
        yield
    finally:
        with suppress(OSError):  # it has files
            folder.rmdir()
        os.close(descriptor)


def _lock(folder: Path, end: float) -> int:
    """Return a descriptor of the folder that has its lock, if there are locks."""
    is_told = False
    while True:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno not in _HELD:
                text = "%s: can't be locked (%s), so let no two runs write it at the same time"
                logger.warning(text, folder, e.strerror)
                return descriptor
            os.close(descriptor)
            is_told = _wait(folder, end, is_told=is_told)
        else:
            if _is_at(descriptor, folder):
                return descriptor
            os.close(descriptor)  # removed, and perhaps made again, before it was locked
            folder.mkdir(parents=True, exist_ok=True)


def _wait(folder: Path, end: float, *, is_told: bool) -> bool:
    if time.monotonic() >= end:
        raise WorkError(folder, "is still being written by another run", remedy="Wait for its end, and run it again.")
    if not is_told:
        logger.warning("%s: is being written by another run; waiting for its end", folder)
    time.sleep(_PAUSE)
    return True


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False
