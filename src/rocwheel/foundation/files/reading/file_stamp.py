"""Whether a file is still the one that was listed: nobody has written to it, or put another in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.errors import WorkError, read_error
from rocwheel.foundation.messages.counting import count

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["ChangedFileError", "FileStamp", "is_settled"]


_ANY = -1
"""What differs between machines, in the stamp of a file that they share."""

_GRANULARITY = 2_000_000_000
"""Nanoseconds; FAT has the coarsest times."""


class FileStamp(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Which file stands at a path, and when it was last written (stat(2)); times in nanoseconds."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    links: int
    """How many names it has, whose coming and going is a change, too, but none of its bytes."""

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Return the stamp of a file with this status."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink
        )

    @classmethod
    def at(cls, path: Path) -> FileStamp:
        """Return the stamp of the file at a path; raise `InputError` when it can't be read."""
        try:
            return cls.of(path.stat())
        except OSError as e:
            raise read_error(str(path), e) from e

    def for_any_machine(self) -> FileStamp:
        """Return the stamp as every machine sees it that shares the file: its size, and when it was last written.

        Machines number file systems, and some also files, as they like.
        """
        return FileStamp(_ANY, _ANY, self.size, self.modified, _ANY, _ANY)

    def require(self, status: os.stat_result, path: str) -> None:
        """Raise `ChangedFileError` unless the file at ``path``, which has this status, is the stamped one.

        It may have got or lost names meanwhile, as where an index or a backup links to it.
        """
        now = FileStamp.of(status)
        if self.device == _ANY:
            now = now.for_any_machine()
        if now != self and not self._has_other_links_alone(now):
            raise ChangedFileError(path, self._difference(now))

    def _has_other_links_alone(self, now: FileStamp) -> bool:
        # A file without a name was removed, or another one took its name.
        return now.links not in {0, self.links} and self == msgspec.structs.replace(
            now, changed=self.changed, links=self.links
        )

    def _difference(self, now: FileStamp) -> str:
        if (self.device, self.inode) != (now.device, now.inode):
            return "another file took its place while it was being read"
        if not now.links:
            return "was removed or replaced while it was being read"
        if self.size != now.size:
            return f"changed from {self.size} to {count(now.size, 'byte')} while it was being read"
        return "was written to while it was being read"


def is_settled(stamp: FileStamp, read_at: int) -> bool:
    """Return whether the last change to a file or folder lies far enough before its reading.

    Times are in nanoseconds since 1970. A date of the future is one that somebody gave the file: whoever writes to it
    takes that date off, and so leaves a trace.
    """
    modified = stamp.modified if stamp.modified <= read_at else 0
    return max(modified, stamp.changed) + _GRANULARITY <= read_at


class ChangedFileError(WorkError):
    """An input that something else wrote to, truncated or replaced between its listing and its last byte."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found, remedy="Leave the inputs alone until the work is done, and run it again.")
