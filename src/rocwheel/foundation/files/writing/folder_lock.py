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
from functools import partial
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import WorkError, write_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["PATIENCE", "locked_folder"]

PATIENCE = 600.0
"""Seconds that a process waits for another."""
_PAUSES = (0.001, 0.1)
"""Seconds of the first pause and of the longest."""
_HELD = (errno.EWOULDBLOCK, errno.EACCES)

logger = logging.getLogger(__name__)


@contextmanager
def locked_folder(
    folder: Path,
    patience: float = PATIENCE,
    *,
    silence: float = 0.0,
    on_no_lock: Callable[[OSError], None] | None = None,
) -> Iterator[None]:
    """Make a folder if it is not there, and hold its lock during the block; afterwards an empty one is removed.

    A process that finds it locked says so in a warning after ``silence`` seconds, and waits. Where the file system has
    no locks, as some of networks, or the folder can't be opened, ``on_no_lock`` is told why, by default in a warning
    that nothing keeps others out. Raises `WorkError` when the folder can't be made, or is still locked after
    ``patience`` seconds.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(folder, _Wait(folder, patience, silence), on_no_lock or partial(_warn, folder))
    except OSError as e:
        raise write_error(folder, e) from e
    try:
        yield
    finally:
        with suppress(OSError):  # it has files
            folder.rmdir()
        os.close(descriptor)


def _lock(folder: Path, other: _Wait, on_no_lock: Callable[[OSError], None]) -> int:
    """Return a descriptor of the folder that has its lock, if there are locks."""
    while True:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno not in _HELD:
                on_no_lock(e)
                return descriptor
            os.close(descriptor)
            other.wait()
        else:
            if _is_at(descriptor, folder):
                return descriptor
            os.close(descriptor)  # removed, and perhaps made again, before it was locked
            folder.mkdir(parents=True, exist_ok=True)


def _warn(folder: Path, error: OSError) -> None:
    logger.warning("%s: can't be locked (%s), so let no two runs write it at the same time", folder, error.strerror)


class _Wait:
    """Waiting for another process, in pauses that grow."""

    def __init__(self, folder: Path, patience: float, silence: float) -> None:
        self._folder, self._patience, self._silence = folder, patience, silence
        self._start = time.monotonic()
        self._pause, self._longest = _PAUSES
        self._is_told = False

    def wait(self) -> None:
        """Make a pause, and say so once; raise `WorkError` at the end of the patience."""
        waited = time.monotonic() - self._start
        if waited >= self._patience:
            found, remedy = "is still being written by another run", "Wait for its end, and run it again."
            raise WorkError(self._folder, found, remedy=remedy)
        if not self._is_told and waited >= self._silence:
            logger.warning("%s: is being written by another run; waiting for its end", self._folder)
            self._is_told = True
        time.sleep(self._pause)
        self._pause = min(self._pause * 1.5, self._longest)


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False
