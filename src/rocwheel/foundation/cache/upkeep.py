"""What is in a folder of entries, what leaves it when it gets too large, and whether its bytes are right."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.cache.entry import DamagedEntryError, parse_entry
from rocwheel.foundation.errors import read_error
from rocwheel.foundation.files.writing.scratch import remove_abandoned
from rocwheel.foundation.progress import SILENT, Progress, tracked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Contents",
    "KeptEntry",
    "NotRemoved",
    "Pruned",
    "Unreadable",
    "Verified",
    "prune",
    "read_contents",
    "remove_entry",
    "verify",
]

_HEX = frozenset("0123456789abcdef")
_FOLDER_NAME, _NAME = 2, 62


class KeptEntry(msgspec.Struct, frozen=True, order=True):
    """An entry on disk: when it was last used, in seconds since 1970, the size of its file in bytes, and its path."""

    used: float
    size: int
    path: str
    is_file: bool = True
    """Whether it is a file, and not a folder, link or pipe in the place of one, which counts as damaged."""

    @property
    def key(self) -> bytes:
        """The key, which the names of the file and its folder spell."""
        path = Path(self.path)
        return bytes.fromhex(path.parent.name + path.name)


class Unreadable(msgspec.Struct, frozen=True):
    """An entry, or a folder of some, that could not be read, so that nobody knows whether its bytes are right."""

    path: str
    reason: str
    """What the system said."""


class NotRemoved(msgspec.Struct, frozen=True):
    """An entry that should have gone and could not be removed."""

    path: str
    reason: str
    """What the system said."""


class Contents(msgspec.Struct, frozen=True):
    """The entries of a cache, those that were not used for longest first."""

    entries: tuple[KeptEntry, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    """Folders whose entries are not among them."""


class Pruned(msgspec.Struct, frozen=True):
    """What a pruning has removed and left; sizes in bytes."""

    removed: int = 0
    removed_bytes: int = 0
    left: int = 0
    left_bytes: int = 0
    not_removed: tuple[NotRemoved, ...] = ()
    """Those of the entries left that should have gone."""
    unreadable: tuple[Unreadable, ...] = ()
    """Folders that stay as they are, and are not counted."""


class Verified(msgspec.Struct, frozen=True):
    """How many entries were looked at, their size in bytes, and those of which not all is well."""

    entries: int = 0
    bytes: int = 0
    damaged: tuple[str, ...] = ()
    """Paths of those whose bytes are not what was written."""
    not_removed: tuple[str, ...] = ()
    """Those of the damaged ones that could not be removed."""
    unreadable: tuple[Unreadable, ...] = ()
    """Those that stay as they are, and folders whose entries were not looked at."""


def read_contents(folder: Path) -> Contents:
    """Return all entries of a cache; a folder that does not exist has none.

    Entries that vanish meanwhile are passed over, and so is everything without the name of an entry. Folders in it that
    can't be read are returned. Raises `InputError` where the folder itself can't be read.
    """
    found = [_entries_of(place) for place in _folders(folder)]
    entries = sorted(entry for those in found if isinstance(those, list) for entry in those)
    return Contents(tuple(entries), tuple(place for place in found if isinstance(place, Unreadable)))


def _entries_of(place: Path) -> list[KeptEntry] | Unreadable:
    try:
        return _scan(place)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as e:
        return Unreadable(str(place), e.strerror or str(e))


def _scan(place: Path) -> list[KeptEntry]:
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            if _is_name(entry.name, _NAME):
                with suppress(FileNotFoundError):
                    found.append(_kept_entry(entry))
    return found


def _kept_entry(entry: os.DirEntry[str]) -> KeptEntry:
    status = entry.stat(follow_symlinks=False)
    is_file = stat.S_ISREG(status.st_mode)
    return KeptEntry(status.st_mtime, status.st_size if is_file else 0, entry.path, is_file)


def _folders(folder: Path) -> Iterator[Path]:
    try:
        places = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as e:
        raise read_error(folder, e) from e
    yield from (place for place in places if _is_name(place.name, _FOLDER_NAME))


def _is_name(name: str, length: int) -> bool:
    return len(name) == length and _HEX.issuperset(name)


def prune(folder: Path, limit: int) -> Pruned:
    """Remove the entries that were not used for longest until those left have ``limit`` bytes at most.

    What killed processes have left goes, too, and so does what is no file. An entry that a build is reading stays
    readable for it. Raises what `read_contents` does; what can't be removed is left.
    """
    for place in _folders(folder):
        remove_abandoned(place)
    contents = read_contents(folder)
    total = sum(entry.size for entry in contents.entries)
    count = removed_bytes = 0
    stuck = []
    for entry in sorted(contents.entries, key=lambda entry: entry.is_file):
        if entry.is_file and total - removed_bytes <= limit:
            break
        try:
            remove_entry(Path(entry.path))
        except OSError as e:
            stuck.append(NotRemoved(entry.path, e.strerror or str(e)))
        else:
            count, removed_bytes = count + 1, removed_bytes + entry.size
    left, left_bytes = len(contents.entries) - count, total - removed_bytes
    return Pruned(count, removed_bytes, left, left_bytes, tuple(stuck), contents.unreadable)


def remove_entry(path: Path) -> None:
    """Remove an entry, or an empty folder in its place; raise `OSError` for what can't be, such as a full folder."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        path.rmdir()


def verify(folder: Path, progress: Progress = SILENT) -> Verified:
    """Read every entry, and remove those whose bytes are not what was written; what can't be read stays.

    Raises what `read_contents` does.
    """
    contents = read_contents(folder)
    entries = contents.entries
    reading = tracked(progress, "reading the cache", entries, [entry.size for entry in entries])
    faults = [fault for entry in reading if (fault := _find_fault(entry))]
    damaged = tuple(fault for fault in faults if isinstance(fault, str))
    unreadable = (*contents.unreadable, *(fault for fault in faults if isinstance(fault, Unreadable)))
    left = tuple(path for path in damaged if not _is_removed(path))
    return Verified(len(entries), sum(entry.size for entry in entries), damaged, left, unreadable)


def _find_fault(entry: KeptEntry) -> str | Unreadable | None:
    """Return the path of a damaged entry, or why one can't be read; None for one that is sound, or gone."""
    if not entry.is_file:
        return entry.path
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
        remove_entry(Path(path))
    except OSError:
        return False
    return True
