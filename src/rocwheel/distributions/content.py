"""The bytes of an archive member, readable by range any number of times and by any worker."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.files import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

__all__ = ["BytesContent", "Content", "FileContent", "SequenceContent", "slice_buffers"]


class Content(Protocol):
    """A source of ``size`` bytes. Implementations are plain picklable values, so that workers can open them."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def open(self, start: int, stop: int) -> AbstractContextManager[list[memoryview]]:
        """Give the bytes from ``start`` to ``stop`` as a few buffers, valid inside the block."""


class BytesContent(msgspec.Struct, frozen=True):
    """Bytes at hand, such as a generated file."""

    data: bytes

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Give a view of the bytes."""
        yield [memoryview(self.data)[start:stop]]


class FileContent(msgspec.Struct, frozen=True):
    """A range of a file, as it is."""

    source: FileRange

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.source.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Map the range of the file."""
        with self.source.part(start, stop).map() as view:
            yield [view]


class SequenceContent:
    """Several contents, one after the other, such as the members of a tar with their headers."""

    def __init__(self, parts: tuple[Content, ...]) -> None:
        self.parts = parts
        self._ends = tuple(accumulate(part.size for part in parts))

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._ends[-1] if self._ends else 0

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Open only the parts that the range touches."""
        with ExitStack() as stack:
            buffers: list[memoryview] = []
            index = bisect_right(self._ends, start)
            while index < len(self.parts) and (begin := self._ends[index] - self.parts[index].size) < stop:
                part = self.parts[index]
                part_range = max(start - begin, 0), min(stop - begin, part.size)
                buffers += stack.enter_context(part.open(*part_range))
                index += 1
            yield buffers


def slice_buffers(buffers: list[memoryview], start: int, stop: int) -> list[memoryview]:
    """Return the part of a buffer sequence between two offsets, without copying."""
    parts = []
    begin = 0
    for buffer in buffers:
        end = begin + len(buffer)
        if start < end and begin < stop:
            parts.append(buffer[max(start - begin, 0) : min(stop, end) - begin])
        begin = end
    return parts
