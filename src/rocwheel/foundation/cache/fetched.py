"""Folders with what commands have fetched from a URL: whoever uses one holds its lock (flock(2)) until it ends."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rocwheel.foundation.cache.cache_folder import cache_folder
from rocwheel.foundation.cache.folders import lock_folder, open_folder
from rocwheel.foundation.errors import write_error

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["claim", "fetched_cache"]


def fetched_cache() -> Path:
    """Return the folder of all these folders."""
    return cache_folder() / "fetched"


def claim(folder: Path) -> Path:
    """Return a folder, or one beside it if another process uses that; nobody else takes it until this process ends.

    It is made if it is not there, and noted as used now. Raises `WorkError` where that can't be done.
    """
    for number in itertools.count():
        free = folder.with_name(f"{folder.name}-{number}") if number else folder
        if free in _claimed or _is_claimed(free):
            with suppress(OSError):
                os.utime(free)
            return free
    raise AssertionError


_claimed: dict[Path, int] = {}
"""Folders that this process uses, with the descriptors that hold their locks until it ends."""


def _is_claimed(folder: Path) -> bool:
    """Make a folder if it is not there, and return whether this process has its lock, as far as there are locks."""
    try:
        while (descriptor := _open_made(folder)) is None or not _is_at(descriptor, folder):
            pass  # another process has pruned it meanwhile
    except BlockingIOError:
        return False
    except OSError as e:
        raise write_error(folder, e) from e
    _claimed[folder] = descriptor
    return True


def _open_made(folder: Path) -> int | None:
    """Return what `_open_locked` does for a folder that is made if need be; none if it goes again at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        descriptor = open_folder(folder)
        try:
            lock_folder(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:  # some network file systems have no locks
            pass
        return descriptor
    return None


def _is_at(descriptor: int, folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    os.close(descriptor)
    return False
