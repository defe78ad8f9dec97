"""Members that one step of a job has unpacked for the next, so that they are inflated and hashed once."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rocwheel.core.remote_placeholders import source_at
from rocwheel.distributions.packing.compression import STORED
from rocwheel.distributions.zip.reader import digest_member, open_content, open_unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.core.reading import FileRange
    from rocwheel.distributions.content.digest import Digest
    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["UnpackedMembers"]

_LEAST = 1 << 20
"""Members below this size, in bytes, are unpacked again: that takes less than a file that stays open is worth."""
_MOST = 64
_MOST_BYTES = 4 << 30


class UnpackedMembers:
    """The digests of members, and nameless files with the bytes of large ones, up to a number and a size.

    The files take half of what is free on their disk at most, so that members which are not kept can be unpacked, too.
    Several threads may use it at the same time. `close` ends the files. Of a wheel that changed since, nothing
    is found: its members have another stamp.
    """

    def __init__(self, *, least: int = _LEAST, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self.digests: dict[ZipMember, Digest] = {}
        """Those of members that were read whole, and whose checksum was right."""
        self._least, self._most, self._room = least, most, most_bytes
        self._held = 0
        self._kept: dict[ZipMember, tuple[ExitStack, FileRange]] = {}
        self._lock = threading.Lock()

    def digest(self, member: ZipMember) -> Digest:
        """Return what `digest_member` does, which is asked only once."""
        if member not in self.digests:
            self.digests[member] = digest_member(member)
        return self.digests[member]

    def find(self, member: ZipMember) -> FileRange | None:
        """Return the bytes of a member if they were kept; they stay until `keep_only`."""
        found = self._kept.get(member)
        return found[1] if found else None

    @contextmanager
    def open(self, member: ZipMember) -> Iterator[tuple[FileRange, Digest]]:
        """Yield what `open_unpacked` does, which stays for the next call if there is room for it."""
        if found := self.find(member):
            yield found, self.digests[member]
            return
        with ExitStack() as stack:
            unpacked, digest = stack.enter_context(open_unpacked(member))
            self.digests[member] = digest
            yield unpacked, digest
            if self._takes(member, unpacked):
                self._kept[member] = (stack.pop_all(), unpacked)

    @contextmanager
    def open_content(self, member: ZipMember) -> Iterator[FileRange]:
        """Yield what `rocwheel.distributions.zip.reader.open_content` does, which stays like what `open` yields."""
        if member.method == STORED and source_at(member.packed.path):
            with open_content(member) as content:
                yield content
            return
        with self.open(member) as (unpacked, _):
            yield unpacked

    def _takes(self, member: ZipMember, unpacked: FileRange) -> bool:
        with self._lock:
            takes = self._least <= member.size <= self._room and self._most > 0
            takes = takes and self._held + member.size <= _free_at(unpacked.path)
            if takes:
                self._count(member.size)
        return takes

    def _count(self, size: int, number: int = 1) -> None:
        self._most -= number
        self._room -= size
        self._held += size

    def keep_only(self, is_wanted: Callable[[ZipMember], bool]) -> None:
        """Close the files of all other members, which makes room for more."""
        for member in [member for member in self._kept if not is_wanted(member)]:
            self._kept.pop(member)[0].close()
            with self._lock:
                self._count(-member.size, -1)

    def close(self) -> None:
        """Close all files."""
        self.keep_only(lambda _: False)


def _free_at(path: str) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
