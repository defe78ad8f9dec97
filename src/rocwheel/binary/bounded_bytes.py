"""Reads a file's bytes with bounds checks, and maps old offsets to new offsets after bytes are inserted or removed."""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.patch import Replacement
from rocwheel.core.reading import Data, FileView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from struct import Struct


Buffer: TypeAlias = bytes | bytearray | mmap.mmap | Data

_FIRST_STRING_CHUNK = 256
_LONGEST_STRING = 1 << 16
_MOST_STRINGS = 64 << 20
"""The limit on the total size of a file's strings: in a damaged table, all entries may refer to one long string."""
_SEARCH_CHUNK = 1 << 20


@contextmanager
def viewing(data: Buffer) -> Iterator[Data]:
    """Yield a view of ``data`` for `BoundedBytes`. After the block, you can close or resize the underlying memory."""
    if isinstance(data, FileView):
        yield data
        return
    with memoryview(data) as view:
        yield view


class BoundedBytes:
    """The bytes of one file. Each access is checked against the file's size and returns a copy.

    Instances don't keep or return views of the bytes, so a memory map that contains the bytes can be closed at any
    time. The subclass for each format specifies the exception class and the noun for its files.
    """

    __slots__ = ("_given", "_view", "name", "size")

    error: ClassVar[type[InputError]] = InputError
    whole: ClassVar[str] = "a whole file"

    def __init__(self, view: Data, name: str) -> None:
        self._view = view
        self.name = name
        self.size = len(view)
        self._given = 0

    def require(self, offset: int, size: int, what: str) -> None:
        """Raise the format's error unless ``size`` bytes at ``offset`` are in the file.

        ``what`` describes the bytes.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.error(
                self.name,
                f"{what} would span {offset:#x} to {offset + size:#x}, but the file ends at {self.size:#x}",
                expected=self.whole,
                remedy="The file is truncated or damaged. Copy the file again, or rebuild it.",
            )

    def unpack(self, layout: Struct, offset: int, what: str) -> tuple[Any, ...]:
        """Return the fields of the structure at ``offset``."""
        self.require(offset, layout.size, what)
        return layout.unpack(bytes(self._view[offset : offset + layout.size]))

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return a copy of a range."""
        self.require(offset, size, what)
        return bytes(self._view[offset : offset + size])

    def find(self, text: bytes, offset: int, size: int, what: str) -> Iterator[int]:
        """Yield the offset of each occurrence of ``text`` in a range."""
        end = offset + size
        for start in range(offset, end, _SEARCH_CHUNK):
            chunk = self.read(start, min(_SEARCH_CHUNK + len(text) - 1, end - start), what)
            position = chunk.find(text)
            while position >= 0:
                yield start + position
                position = chunk.find(text, position + 1)

    def string(self, offset: int, end: int, what: str) -> str:
        """Return the UTF-8 string from ``offset`` to its NUL byte, which must come before ``end``."""
        text = self.string_bytes(offset, end, what)
        try:
            return text.decode()
        except UnicodeDecodeError as e:
            raise self.error(self.name, f"{what} is {text!r}", expected="UTF-8 text") from e

    def string_bytes(self, offset: int, end: int, what: str) -> bytes:
        """Return the bytes from ``offset`` to the NUL byte, which must come before ``end``."""
        for size in (_FIRST_STRING_CHUNK, _LONGEST_STRING):
            chunk = self.read(offset, min(size, end - offset), what)
            length = chunk.find(b"\0")
            if length >= 0:
                self._count(length, what)
                return chunk[:length]
        raise self.error(self.name, f"{what} doesn't end inside its table or is longer than {_LONGEST_STRING} bytes")

    def _count(self, length: int, what: str) -> None:
        self._given += length
        if self._given > _MOST_STRINGS:
            found = f"strings that total more than {_MOST_STRINGS} bytes, counting {what}"
            raise self.error(self.name, found, expected="names that don't share long strings")


class OffsetMoves(msgspec.Struct, frozen=True):
    """How a file's bytes move, as pairs of an old file offset, in ascending order, and the distance to add to it.

    A distance applies to everything from its offset to the next pair's offset. If a distance is smaller than the
    distance before it, the bytes immediately before its offset are removed.
    """

    steps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, changes: Iterable[tuple[int, int]]) -> OffsetMoves:
        """Return the moves for ``changes``: pairs of an offset and the number of bytes inserted (negative: removed)."""
        steps: list[tuple[int, int]] = []
        distance = 0
        for start, size in sorted(change for change in changes if change[1]):
            distance += size
            steps = [*(step for step in steps if step[0] != start), (start, distance)]
        return cls(tuple(steps))

    def offset(self, old: int) -> int:
        """Return the new file offset of the byte at ``old``."""
        return old + next((by for start, by in reversed(self.steps) if old >= start), 0)

    def end(self, old: int) -> int:
        """Return the new end of a range that ends at the file offset ``old``."""
        return self.offset(old - 1) + 1 if old else 0

    def iter_moved(self, old_size: int) -> Iterator[Replacement]:
        """Yield every range that moves, in ascending order; ``old_size`` is the size of the old file."""
        last = self.steps[-1][1] if self.steps else 0
        for (start, by), (stop, next_by) in pairwise((*self.steps, (old_size, last))):
            new_stop = stop + min(by, next_by)
            if start + by < new_stop:
                yield Replacement(start + by, new_stop, source=start)
