"""Manages cache folders that commands can only keep or remove as a unit: fetched files, and notes on published files.

A folder can be removed at any time. Without a note, a command reads the file itself.
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
from rocwheel.core.reading import belongs_to_user
from rocwheel.core.scratch import is_at

if TYPE_CHECKING:
    from collections.abc import Iterator


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


class KeptFolder(msgspec.Struct, frozen=True, order=True):
    """A folder on disk: its last use in seconds since 1970, the size of its files in bytes, and its path."""

    used: float
    size: int
    path: str


def list_folders(place: Path) -> list[KeptFolder]:
    """Return all subfolders, least recently used first. Raises `InputError` if the folder can't be read."""
    try:
        folders = [folder for folder in place.iterdir() if folder.is_dir() and not folder.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as e:
        raise read_error(place, e) from e
    return sorted(found for folder in folders for found in _measured(folder))


def _measured(folder: Path) -> Iterator[KeptFolder]:
    """Yield the folder with its size, or nothing if it disappears in the meantime."""
    with suppress(FileNotFoundError):
        used = folder.stat().st_mtime
        size = 0
        for root, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  # many files
        yield KeptFolder(used, size, str(folder))


def prune_folders(place: Path, limit: int, *, needs_lock: bool = True) -> Pruned:
    """Remove the least recently used folders until the remaining folders have at most ``limit`` bytes.

    Folders that can't be removed remain. With ``needs_lock``, folders also remain if a process uses them or if they
    can't be locked: on a file system without locks, any folder may be in use. Raises the same errors as `list_folders`.
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
    """Return the parent folder of the folders with fetched files."""
    return cache_folder() / "fetched"


def claim(folder: Path) -> Path:
    """Return this folder, or a folder next to it if another process uses this folder or another user owns it.

    The folder stays claimed until this process ends.

    Creates the folder if needed, and marks it as used now. Raises `WorkError` if that fails.
    """
    for number in itertools.count():
        free = folder.with_name(f"{folder.name}-{number}") if number else folder
        if free in _claimed or _is_claimed(free):
            with suppress(OSError):
                os.utime(free)
            return free
    raise AssertionError


_claimed: dict[Path, int] = {}
"""The folders that this process uses, with the descriptors that keep the folders locked until the process ends."""


def _is_claimed(folder: Path) -> bool:
    """Create a folder if needed, and return whether this process has locked it or whether locks are unavailable.

    Return `False` for a folder that other users own or can write to: its files may contain anything.
    """
    try:
        while True:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
            with suppress(FileNotFoundError):  # another process removed the folder in the meantime
                descriptor = os.open(folder, _FOLDER)
                is_locked = belongs_to_user(os.fstat(descriptor)) and _lock(descriptor)
                if is_locked and is_at(descriptor, folder):
                    _claimed[folder] = descriptor
                    return True
                os.close(descriptor)
                if not is_locked:
                    return False
    except OSError as e:
        raise write_error(folder, e) from e


def _lock(descriptor: int) -> bool:
    """Return whether no other process has locked a folder. Some network file systems have no locks."""
    try:
        fcntl.flock(descriptor, _LOCK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


_LIMIT = 100 * 10**6
"""The total size of all notes in bytes. Notes on a thousand files take up about 500,000 bytes."""


def published_cache() -> Path:
    """Return the parent folder of the notes."""
    return cache_folder() / "published"


def published_folder(dist_dir: Path) -> Path:
    """Return the folder with notes on the files in a folder. Raises `InputError` if the user has no cache."""
    return published_cache() / hashlib.sha256(os.fsencode(dist_dir.resolve())).hexdigest()[:16]


def keep_published(folder: Path) -> None:
    """Mark a folder as used now. If there are too many folders, remove the least recently used ones."""
    with suppress(OSError):
        os.utime(folder)
    with suppress(InputError):
        prune_folders(folder.parent, _LIMIT, needs_lock=False)
