"""What earlier runs know of an index: which files they have read, and what they have written.

A file is not read again while its size, times and inode are as they were, as git does with its index. Times have a
granularity, so a file that was written to shortly before it was read could have been written to again without a trace:
it is read again (git's documentation calls it "racily clean"). The same goes for what a run has written: the next one
that comes late enough compares it once more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel import __version__
from rocwheel.distributions.index.entry import IndexEntry
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "KNOWN_NAME",
    "KnownFile",
    "KnownIndex",
    "KnownProject",
    "is_settled",
    "read_known",
    "settled",
    "write_known",
]

KNOWN_NAME = ".rocwheel-index.json"
"""The file in the output; a hidden name, which no page links to."""

_T = TypeVar("_T")

_CHECKS = 5
"""Raised with every release of rocwheel, or change between two, that refuses what was listed before."""

_GRANULARITY = 2_000_000_000
"""Nanoseconds; FAT has the coarsest times."""


class KnownFile(msgspec.Struct, frozen=True, array_like=True):
    """A distribution that was read."""

    entry: IndexEntry
    stamp: FileStamp
    is_settled: bool
    """Whether nobody can have written to the file after it was read without a trace in its stamp."""
    placed: tuple[FileStamp, ...] = ()
    """What was written for it: its copy in the index, and its metadata; empty until that is settled, too."""
    placement: str = ""
    """As what its copy was placed: a hard link has the right bytes, but is no copy."""

    def holds_for(self, stamp: FileStamp) -> bool:
        """Return whether the file that has this stamp now is certainly the one that was read."""
        return self.is_settled and stamp == self.stamp


def is_settled(stamp: FileStamp, read_at: int) -> bool:
    """Return whether the last change to a file or folder lies far enough before its reading.

    Times are in nanoseconds since 1970. A date of the future is one that somebody gave the file: whoever writes to it
    takes that date off, and so leaves a trace.
    """
    modified = stamp.modified if stamp.modified <= read_at else 0
    return max(modified, stamp.changed) + _GRANULARITY <= read_at


def settled(stamps: Iterable[FileStamp | None], read_at: int) -> tuple[FileStamp, ...]:
    """Return the stamps of what was written, all of which is there and settled; none, unless that is so."""
    found = tuple(stamps)
    present = tuple(stamp for stamp in found if stamp and is_settled(stamp, read_at))
    return present if len(present) == len(found) else ()


class KnownProject(msgspec.Struct, frozen=True, array_like=True):
    """The pages of a project as they were written."""

    files: tuple[str, ...]
    """Names of what they list."""
    stamps: tuple[FileStamp, ...]
    """Of the project's folder and of its pages, whose bytes were known then; empty until they are settled."""
    digests: tuple[str, ...] = ()
    """Of the pages' bytes: other ones are somebody's edit."""


class _Kept(msgspec.Struct, frozen=True):
    """What holds whichever rocwheel has noted it, and can't be found out again."""

    version: str = __version__
    """Of the rocwheel that wrote it; another may judge the same files otherwise."""
    checks: int = 0
    """Which checks the files have passed; those of another number are checked again."""
    written: dict[str, tuple[str, ...]] = {}
    """Names of the files in each project's folder, those among them that the run may not have come to yet."""
    yanked: dict[str, str] = {}
    """Reasons of what is yanked, by file name."""
    extras: tuple[str, ...] = ()
    """Names of the files that are neither pages nor distributions."""
    folders: tuple[str, ...] = ()
    """Where the distributions are: what leads from the output there, each ending in a slash."""
    placement: str = ""
    """How the distributions were placed."""
    machine: tuple[str, ...] = ()
    """The targets of the machines that the variants are listed for; empty for any."""
    families: tuple[str, ...] = ()
    """Names of folders in the output with indexes of their own, of a folder of distributions each."""


_KEPT = ("written", "yanked", "extras", "folders", "placement", "machine", "families")


class KnownIndex(_Kept, frozen=True):
    """The content of the file."""

    files: dict[str, KnownFile] = {}
    """By what leads to each from the output."""
    projects: dict[str, KnownProject] = {}
    """By name."""
    root: KnownProject | None = None
    """The page that lists the projects; its stamps are of the pages alone."""
    is_finished: bool = False
    """Whether the run came to its end."""


def read_known(output: Path) -> KnownIndex:
    """Return what earlier runs of this version know; nothing when there is no such file, or a damaged one.

    Of what another version has noted, or other fields than this one notes, what was written and yanked is still known.
    """
    try:
        with open_regular(output / KNOWN_NAME) as file:
            data = file.read()
    except OSError:
        return KnownIndex()
    kept = _decode(data, _Kept) or _Kept()
    is_current = (kept.version, kept.checks) == (__version__, _CHECKS)
    known = _decode(data, KnownIndex) if is_current else None
    return known or KnownIndex(**{name: getattr(kept, name) for name in _KEPT})


def _decode(data: bytes, kind: type[_T]) -> _T | None:
    with suppress(msgspec.DecodeError):
        return decode_json(data, kind)
    return None


def write_known(output: Path, known: KnownIndex) -> None:
    """Write what this run knows. Raises `WorkError` when the output can't be written."""
    write_changed(output / KNOWN_NAME, msgspec.json.encode(msgspec.structs.replace(known, checks=_CHECKS)))
