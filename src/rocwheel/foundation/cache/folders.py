"""Folders that commands keep, each as a whole: how large they are, and which leave when there are too many."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.cache.upkeep import Pruned
from rocwheel.foundation.errors import read_error

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KeptFolder", "list_folders", "lock_folder", "open_folder", "prune_folders"]


class KeptFolder(msgspec.Struct, frozen=True, order=True):
    """A folder on disk: when it was last used, in seconds since 1970, the size of its files in bytes, and its path."""

    used: float
    size: int
    path: str


def open_folder(folder: Path) -> int:
    """Return a descriptor of a folder; raise `OSError` where there is none."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def lock_folder(descriptor: int) -> None:
    """Lock a folder; raises `BlockingIOError` where another one does, another `OSError` where there are no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def list_folders(place: Path) -> list[KeptFolder]:
    """Return all folders in one, those that were not used for longest first; raise `InputError` if it can't be read."""
    try:
        folders = [folder for folder in place.iterdir() if folder.is_dir() and not folder.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as e:
        raise read_error(place, e) from e
    return sorted(found for folder in folders for found in _measured(folder))


def _measured(folder: Path) -> Iterator[KeptFolder]:
    """Yield what a folder is, nothing for one that goes meanwhile."""
    with suppress(FileNotFoundError):
        used = folder.stat().st_mtime
        size = 0
        for root, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  # many files
        yield KeptFolder(used, size, str(folder))


def prune_folders(place: Path, limit: int, *, needs_lock: bool = True) -> Pruned:
    """Remove the folders that were not used for longest until those left have ``limit`` bytes at most.

    What can't be removed stays. Where a folder ``needs_lock``, one that a process uses stays, too, and so does each
    that can't be locked: where the file system has no locks, any may be in use. Raises what `list_folders` does.
    """
    found = list_folders(place)
    total = sum(one.size for one in found)
    count = removed_bytes = 0
    for one in found:
        if total - removed_bytes <= limit and limit:
            break
        if _is_removed(Path(one.path), needs_lock=needs_lock):
            count, removed_bytes = count + 1, removed_bytes + one.size
    return Pruned(count, removed_bytes, len(found) - count, total - removed_bytes)


def _is_removed(folder: Path, *, needs_lock: bool) -> bool:
    try:
        descriptor = open_folder(folder)
    except OSError:
        return False
    try:
        if needs_lock:
            lock_folder(descriptor)
        shutil.rmtree(folder)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
