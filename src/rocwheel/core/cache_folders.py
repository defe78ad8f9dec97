"""Folders in the cache that commands keep as a whole: what they fetched, and what they noted of published files.

Whoever misses a note reads the file: a folder may go at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.cache import Pruned, cache_folder
from rocwheel.core.errors import InputError, read_error, write_error
from rocwheel.core.scratch import is_at

if TYPE_CHECKING:
    from collections.abc import Iterator


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


class KeptFolder(msgspec.Struct, frozen=True, order=True):
    """A folder on disk: when it was last used, in seconds since 1970, the size of its files in bytes, and its path."""

    used: float
    size: int
    path: str


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
        descriptor = os.open(folder, _FOLDER)
    except OSError:
        return False
    try:
        if needs_lock:
            fcntl.flock(descriptor, _LOCK)
        shutil.rmtree(folder)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


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
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process has pruned it meanwhile
                descriptor = os.open(folder, _FOLDER)
                is_locked = _lock(descriptor)
                if is_locked and is_at(descriptor, folder):
                    _claimed[folder] = descriptor
                    return True
                os.close(descriptor)
                if not is_locked:
                    return False
    except OSError as e:
        raise write_error(folder, e) from e


def _lock(descriptor: int) -> bool:
    """Return whether no other process has the lock of a folder; some network file systems have no locks."""
    try:
        fcntl.flock(descriptor, _LOCK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


_LIMIT = 100 * 10**6
"""Bytes of all notes; those of a thousand files have about half a million."""


def published_cache() -> Path:
    """Return the folder of all these folders."""
    return cache_folder() / "published"


def published_folder(dist_dir: Path) -> Path:
    """Return where what is known of the files of a folder is noted; raise `InputError` for a user without a cache."""
    return published_cache() / hashlib.sha256(os.fsencode(dist_dir.resolve())).hexdigest()[:16]


def keep_published(folder: Path) -> None:
    """Note that a folder was used now, and remove those that were not used for longest, if there are too many."""
    with suppress(OSError):
        os.utime(folder)
    with suppress(InputError):
        prune_folders(folder.parent, _LIMIT, needs_lock=False)
