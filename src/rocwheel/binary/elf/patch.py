"""Changes of an ELF file: writes that must stay apart, collected into one patch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.core.patch import FilePatch, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.bytes import ElfBytes

__all__ = ["PatchWriter", "patch_of_writes", "require_apart"]


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

    def write_rows(self, offset: int, table: bytes, size: int) -> None:
        """Set a table of rows of ``size`` bytes each; rows that stay as they are cost nothing."""
        inside = max(min(len(table), self._source.size - offset), 0)
        old = self._source.read(offset, inside, "a changed table") if inside else b""
        if not old:
            self._writes.append(Replacement.of(offset, table))
        elif old != table:
            rows = ((start, table[start : start + size]) for start in range(0, len(table), size))
            self._writes += [
                Replacement.of(offset + start, row) for start, row in rows if row != old[start : start + size]
            ]

    def patch(self) -> FilePatch:
        """Return the collected writes as one patch; raise `ElfError` when two of them overlap."""
        size = max([self._source.size, *(write.stop for write in self._writes)])
        return patch_of_writes(self._writes, size, name=self._source.name)


def patch_of_writes(writes: Iterable[Replacement], size: int, *, name: str) -> FilePatch:
    """Return the patch that makes a file of ``size`` bytes by ``writes`` in any order.

    Raises `ElfError`, naming the file ``name``, when two of them overlap.
    """
    ordered = tuple(sorted(writes, key=lambda write: write.start))
    require_apart(((write.start, write.stop) for write in ordered), name=name)
    return FilePatch(size, ordered)


def require_apart(ranges: Iterable[tuple[int, int]], *, name: str) -> None:
    """Raise `ElfError` when two of some ranges, each a start and an end in rising order, overlap."""
    if any(end > start for (_, end), (start, _) in pairwise(ranges)):
        raise ElfError(name, "tables that overlap", expected="a place of its own for each")
