"""What is in a folder of entries, what leaves it when it gets too large, and whether its bytes are right."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.cache.entry import DamagedEntryError, parse_entry
from rocwheel.foundation.errors import read_error
from rocwheel.foundation.files.scratch import remove_abandoned
from rocwheel.foundation.progress import SILENT, Progress, tracked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KeptEntry", "Pruned", "Unreadable", "Verified", "list_entries", "prune", "verify"]

_HEX = frozenset("0123456789abcdef")
_FOLDER_NAME, _NAME = 2, 62


class KeptEntry(msgspec.Struct, frozen=True, order=True):
    """An entry on disk: when it was last used, in seconds since 1970, the size of its file in bytes, and its path."""

    used: float
    size: int
    path: str

    @property
    def key(self) -> bytes:
        """The key, which the names of the file and its folder spell."""
        path = Path(self.path)
        return bytes.fromhex(path.parent.name + path.name)


class Pruned(msgspec.Struct, frozen=True):
    """What a pruning has removed and left; sizes in bytes."""

    removed: int = 0
    removed_bytes: int = 0
    left: int = 0
    left_bytes: int = 0


class Unreadable(msgspec.Struct, frozen=True):
    """An entry whose bytes could not be read, so that nobody knows whether they are right."""

    path: str
    reason: str
    """What the system said."""


class Verified(msgspec.Struct, frozen=True):
    """How many entries were looked at, their size in bytes, and those of which not all is well."""

    entries: int = 0
    bytes: int = 0
    damaged: tuple[str, ...] = ()
    """Paths of those whose bytes are not what was written."""
    not_removed: tuple[str, ...] = ()
    """Those of the damaged ones that could not be removed."""
    unreadable: tuple[Unreadable, ...] = ()
    """Those that stay as they are."""


def list_entries(folder: Path) -> list[KeptEntry]:
    """Return all entries, those that were not used for longest first; a folder that does not exist has none.

    What goes while it is listed is passed over, and so is what is no entry. Raises `InputError` for a folder that
    can't be read.
    """
    found = []
    for place in _folders(folder):
        with suppress(FileNotFoundError), os.scandir(place) as entries:
            for entry in entries:
                if _is_name(entry.name, _NAME) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append(KeptEntry(status.st_mtime, status.st_size, entry.path))
    return sorted(found)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        places = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as e:
        raise read_error(folder, e) from e
    yield from (place for place in places if _is_name(place.name, _FOLDER_NAME) and place.is_dir())


def _is_name(name: str, length: int) -> bool:
    return len(name) == length and _HEX.issuperset(name)


def prune(folder: Path, limit: int) -> Pruned:
    """Remove the entries that were not used for longest until those left have ``limit`` bytes at most.

    What killed processes have left goes, too. An entry that a build is reading stays readable for it. Raises what
    `list_entries` does; what can't be removed is left.
    """
    for place in _folders(folder):
        remove_abandoned(place)
    entries = list_entries(folder)
    total = sum(entry.size for entry in entries)
    count = removed_bytes = 0
    for entry in entries:
        if total - removed_bytes <= limit:
            break
        with suppress(OSError):
            Path(entry.path).unlink(missing_ok=True)
            count, removed_bytes = count + 1, removed_bytes + entry.size
    return Pruned(count, removed_bytes, len(entries) - count, total - removed_bytes)


def verify(folder: Path, progress: Progress = SILENT) -> Verified:
    """Read every entry, and remove those whose bytes are not what was written; what can't be read stays.

    Raises what `list_entries` does.
    """
    entries = list_entries(folder)
    reading = tracked(progress, "reading the cache", entries, [entry.size for entry in entries])
    faults = [fault for entry in reading if (fault := _find_fault(entry))]
    damaged = tuple(fault for fault in faults if isinstance(fault, str))
    unreadable = tuple(fault for fault in faults if isinstance(fault, Unreadable))
    left = tuple(path for path in damaged if not _is_removed(path))
    return Verified(len(entries), sum(entry.size for entry in entries), damaged, left, unreadable)


def _find_fault(entry: KeptEntry) -> str | Unreadable | None:
    """Return the path of a damaged entry, what is said of one that can't be read, none for one that is well or gone."""
    try:
        parse_entry(entry.key, memoryview(Path(entry.path).read_bytes()))
    except FileNotFoundError:
        return None
    except DamagedEntryError:
        return entry.path
    except OSError as e:  # such as too many open files: nothing is known of its bytes
        return Unreadable(entry.path, e.strerror or str(e))
    return None


def _is_removed(path: str) -> bool:
    try:
        Path(path).unlink(missing_ok=True)
    except OSError:
        return False
    return True
