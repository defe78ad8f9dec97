"""A change to a file as a few replaced bytes and a tail, applied while the file streams by."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf_bytes import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.elf_bytes import ElfBytes

__all__ = ["ElfPatch", "PatchWriter"]

_ZEROS = memoryview(bytes(1 << 20))


class ElfPatch(msgspec.Struct, frozen=True):
    """What turns one ELF file into another of ``size`` bytes; a plain value that can be pickled."""

    size: int
    """Bytes of the result."""
    replacements: tuple[tuple[int, bytes], ...] = ()
    """Offset and new bytes; sorted, apart from each other, inside the old file."""
    tail: bytes = b""
    """The last bytes of the result; between them and the old file's end stand zeros."""

    @property
    def is_identity(self) -> bool:
        """Whether the result is the old file, byte for byte."""
        return not self.replacements and not self.tail

    def apply(self, data: memoryview, start: int = 0, stop: int | None = None) -> list[memoryview]:
        """Return the result's bytes from ``start`` to ``stop`` as slices of the old file ``data`` and of the changes.

        Nothing is copied, whatever the file's size.
        """
        stop = self.size if stop is None else min(stop, self.size)
        buffers = []
        begin = 0
        for buffer in self._pieces(data):
            end = begin + len(buffer)
            if start < end and begin < stop:
                buffers.append(buffer[max(start - begin, 0) : min(stop, end) - begin])
            begin = end
        return buffers

    def _pieces(self, data: memoryview) -> Iterator[memoryview]:
        position = 0
        for offset, changed in self.replacements:
            yield data[position:offset]
            yield memoryview(changed)
            position = offset + len(changed)
        yield data[position:]
        padding = self.size - len(data) - len(self.tail)
        while padding > 0:
            yield _ZEROS[:padding]
            padding -= len(_ZEROS)
        yield memoryview(self.tail)


class PatchWriter:
    """Collects writes to an ELF file and beyond its end, and drops those that change nothing."""

    def __init__(self, source: ElfBytes) -> None:
        self._source = source
        self._inside: list[tuple[int, bytes]] = []
        self._beyond: list[tuple[int, bytes]] = []

    def write(self, offset: int, data: bytes) -> None:
        """Set the bytes at ``offset``, apart from all other writes."""
        split = max(min(len(data), self._source.size - offset), 0)
        inside, beyond = data[:split], data[split:]
        if inside and inside != self._source.read(offset, split, "a changed part"):
            self._inside.append((offset, inside))
        if beyond:
            self._beyond.append((offset + split, beyond))

    def patch(self) -> ElfPatch:
        """Return the collected writes as one patch; raise `ElfError` when two of them overlap."""
        inside = tuple(sorted(self._inside))
        if any(offset + len(data) > following for (offset, data), (following, _) in pairwise(inside)):
            raise ElfError(self._source.name, "tables that overlap", expected="a place of its own for each")
        if not self._beyond:
            return ElfPatch(self._source.size, inside)
        first = min(offset for offset, _ in self._beyond)
        size = max(offset + len(data) for offset, data in self._beyond)
        tail = bytearray(size - first)
        for offset, data in self._beyond:
            tail[offset - first : offset - first + len(data)] = data
        return ElfPatch(size, inside, bytes(tail))
