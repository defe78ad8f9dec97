"""What earlier runs know of an index: which files they have read, and what they have written.

A file is not read again while its size, times and inode are as they were, as git does with its index. Times have a
granularity, so a file that was written to shortly before it was read could have been written to again without a trace:
it is read again (git's documentation calls it "racily clean").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel import __version__
from rocwheel.distributions.index.entry import IndexEntry
from rocwheel.distributions.index.write_changed import write_changed
from rocwheel.foundation.decoding import decode_json
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.regular_files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KNOWN_NAME", "KnownFile", "KnownIndex", "KnownProject", "is_settled", "read_known", "write_known"]

KNOWN_NAME = ".rocwheel-index.json"
"""The file in the output; a hidden name, which no page links to."""

_CHECKS = 2
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
    """What was written for it: its metadata, and its copy in the index."""

    def holds_for(self, stamp: FileStamp) -> bool:
        """Return whether the file that has this stamp now is certainly the one that was read."""
        return self.is_settled and stamp == self.stamp


def is_settled(stamp: FileStamp, read_at: int) -> bool:
    """Return whether the last change to a file lies far enough before its reading, in nanoseconds since 1970."""
    return max(stamp.modified, stamp.changed) + _GRANULARITY <= read_at


class KnownProject(msgspec.Struct, frozen=True, array_like=True):
    """The pages of a project as they were written."""

    files: tuple[str, ...]
    """Names of what they list."""
    stamps: tuple[FileStamp, ...]
    """Of the project's folder and of its pages, whose bytes were known then."""


class KnownIndex(msgspec.Struct, frozen=True):
    """The content of the file."""

    version: str = __version__
    """Of the rocwheel that wrote it; another may judge the same files otherwise."""
    checks: int = 0
    """Which checks the files have passed; those of another number are checked again."""
    files: dict[str, KnownFile] = {}
    """By file name."""
    written: dict[str, tuple[str, ...]] = {}
    """Names of the files in each project's folder, those among them that the run may not have come to yet."""
    yanked: dict[str, str] = {}
    """Reasons of what is yanked, by file name."""
    base: str = ""
    """What led from a project's folder to the files."""
    projects: dict[str, KnownProject] = {}
    """By name."""


def read_known(output: Path) -> KnownIndex:
    """Return what earlier runs of this version know; nothing when there is no such file, or a damaged one."""
    try:
        with open_regular(output / KNOWN_NAME) as file:
            known = decode_json(file.read(), KnownIndex)
    except (OSError, msgspec.DecodeError):
        return KnownIndex()
    is_current = (known.version, known.checks) == (__version__, _CHECKS)
    return known if is_current else KnownIndex(written=known.written, yanked=known.yanked)


def write_known(output: Path, known: KnownIndex) -> None:
    """Write what this run knows. Raises `WorkError` when the output can't be written."""
    write_changed(output / KNOWN_NAME, msgspec.json.encode(msgspec.structs.replace(known, checks=_CHECKS)))
