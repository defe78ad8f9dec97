"""Folders with what commands have fetched from a URL: whoever uses one holds its lock (flock(2)) until it ends."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.cache.upkeep import Pruned
from rocwheel.foundation.errors import read_error, write_error
from rocwheel.foundation.files.cache_folder import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FetchedFolder", "claim", "fetched_cache", "list_fetched", "prune_fetched"]


class FetchedFolder(msgspec.Struct, frozen=True, order=True):
    """A folder on disk: when it was last used, in seconds since 1970, the size of its files in bytes, and its path."""

    used: float
    size: int
    path: str


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
        descriptor = _open(folder)
        try:
            _lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:  # some network file systems have no locks
            pass
        return descriptor
    return None


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _lock(descriptor: int) -> None:
    """Lock a folder; raises `BlockingIOError` where another one does, another `OSError` where there are no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(descriptor: int, folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    os.close(descriptor)
    return False


def list_fetched(folder: Path) -> list[FetchedFolder]:
    """Return all folders, those that were not used for longest first; raise `InputError` where they can't be read."""
    try:
        places = [place for place in folder.iterdir() if place.is_dir() and not place.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as e:
        raise read_error(folder, e) from e
    return sorted(found for place in places for found in _measured(place))


def _measured(place: Path) -> Iterator[FetchedFolder]:
    """Yield what a folder is, nothing for one that goes meanwhile."""
    with suppress(FileNotFoundError):
        used = place.stat().st_mtime
        size = 0
        for root, _, names in os.walk(place):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118  # many files
        yield FetchedFolder(used, size, str(place))


def prune_fetched(folder: Path, limit: int) -> Pruned:
    """Remove the folders that were not used for longest until those left have ``limit`` bytes at most.

    One that a process uses stays, and so does what can't be locked or removed: where the file system has no locks,
    any may be in use. Raises what `list_fetched` does.
    """
    found = list_fetched(folder)
    total = sum(one.size for one in found)
    count = removed_bytes = 0
    for one in found:
        if total - removed_bytes <= limit and limit:
            break
        if _is_removed(Path(one.path)):
            count, removed_bytes = count + 1, removed_bytes + one.size
    return Pruned(count, removed_bytes, len(found) - count, total - removed_bytes)


def _is_removed(place: Path) -> bool:
    try:
        descriptor = _open(place)
    except OSError:
        return False
    try:
        _lock(descriptor)
        shutil.rmtree(place)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
