"""Bounded reading of a file's bytes, and where they are after some were put in or taken out."""

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
"""Bytes of all strings of a file: entries of a damaged table may all name one long string."""
_SEARCH_CHUNK = 1 << 20


@contextmanager
def viewing(data: Buffer) -> Iterator[Data]:
    """Yield ``data`` for `BoundedBytes`; what it is in memory is free to be closed or resized after the block."""
    if isinstance(data, FileView):
        yield data
        return
    with memoryview(data) as view:
        yield view


class BoundedBytes:
    """The bytes of one file; each access is checked against the file's size and copies what it returns.

    No view of the bytes is kept or given away, so that a memory map below can be closed at any time. A format's own
    class sets the error that it raises, and what its files are called.
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
        """Raise the format's error unless ``size`` bytes at ``offset`` lie inside the file; ``what`` names them."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.error(
                self.name,
                f"{what} would lie at {offset:#x} to {offset + size:#x}, but the file ends at {self.size:#x}",
                expected=self.whole,
                remedy="It is truncated or damaged: copy or build it again.",
            )

    def unpack(self, layout: Struct, offset: int, what: str) -> tuple[Any, ...]:
        """Return the fields of one structure."""
        self.require(offset, layout.size, what)
        return layout.unpack(bytes(self._view[offset : offset + layout.size]))

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return a copy of a range."""
        self.require(offset, size, what)
        return bytes(self._view[offset : offset + size])

    def find(self, text: bytes, offset: int, size: int, what: str) -> Iterator[int]:
        """Yield the offset of each place in a range where ``text`` is."""
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
        raise self.error(self.name, f"{what} has no end inside its table, or is longer than {_LONGEST_STRING} bytes")

    def _count(self, length: int, what: str) -> None:
        self._given += length
        if self._given > _MOST_STRINGS:
            found = f"with {what}, its strings come to more than {_MOST_STRINGS} bytes"
            raise self.error(self.name, found, expected="names that don't share long strings")


class OffsetMoves(msgspec.Struct, frozen=True):
    """What moves: from which old file offset on, in rising order, and how much further back it then is.

    A step counts for all that follows, up to the next step. Where a step leads closer to the file's start than the one
    before it, the bytes right before its offset are gone.
    """

    steps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, changes: Iterable[tuple[int, int]]) -> OffsetMoves:
        """Return the moves by ``changes``: how many bytes are put in (or, negative, taken out) before which offset."""
        steps: list[tuple[int, int]] = []
        distance = 0
        for start, size in sorted(change for change in changes if change[1]):
            distance += size
            steps = [*(step for step in steps if step[0] != start), (start, distance)]
        return cls(tuple(steps))

    def offset(self, old: int) -> int:
        """Return the new file offset of what was at ``old``."""
        return old + next((by for start, by in reversed(self.steps) if old >= start), 0)

    def end(self, old: int) -> int:
        """Return the new file offset of the end of what ended at ``old``."""
        return self.offset(old - 1) + 1 if old else 0

    def iter_moved(self, old_size: int) -> Iterator[Replacement]:
        """Yield all that moves, in rising order; ``old_size`` is that of the old file."""
        last = self.steps[-1][1] if self.steps else 0
        for (start, by), (stop, next_by) in pairwise((*self.steps, (old_size, last))):
            new_stop = stop + min(by, next_by)
            if start + by < new_stop:
                yield Replacement(start + by, new_stop, source=start)
