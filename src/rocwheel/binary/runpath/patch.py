"""Collecting the writes of a changed run path into one patch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.foundation.patch import FilePatch, Replacement

if TYPE_CHECKING:
    from rocwheel.binary.elf.bytes import ElfBytes

__all__ = ["PatchWriter"]


class PatchWriter:
    """Collects writes to an ELF file and beyond its end, and drops those that change nothing."""

    def __init__(self, source: ElfBytes) -> None:
        self._source = source
        self._writes: list[Replacement] = []

    def write(self, offset: int, data: bytes) -> None:
        """Set the bytes at ``offset``, apart from all other writes."""
        inside = max(min(len(data), self._source.size - offset), 0)
        if len(data) > inside or (inside and data != self._source.read(offset, inside, "a changed part")):
            self._writes.append(Replacement.of(offset, data))

    def patch(self) -> FilePatch:
        """Return the collected writes as one patch; raise `ElfError` when two of them overlap."""
        writes = tuple(sorted(self._writes, key=lambda write: write.start))
        if any(before.stop > after.start for before, after in pairwise(writes)):
            raise ElfError(self._source.name, "tables that overlap", expected="a place of its own for each")
        return FilePatch(max([self._source.size, *(write.stop for write in writes)]), writes)
