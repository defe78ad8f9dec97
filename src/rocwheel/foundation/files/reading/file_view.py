"""A file as bytes that are read when they are asked for: what a map would be, without its dangers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Data", "FileView", "have_same_bytes", "iter_pieces", "join_data", "load"]

_PIECE = 4 << 20
_BLOCK = 64 << 10
_BLOCKS = 32
"""Blocks that a file's views keep: headers and tables are read in many small steps."""


class Source(Protocol):
    """A range of a file, such as `rocwheel.foundation.files.reading.file_range.FileRange`."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def part(self, start: int, stop: int) -> Source:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""

    def read(self) -> bytes:
        """Return the bytes of the range."""


class FileView:
    """Bytes of a file: slices are views, too, ``bytes(view)`` reads; several threads may use it at once.

    Reading raises what the source raises. `load` and `iter_pieces` give codecs the buffers that they need.
    """

    __slots__ = ("_blocks", "_start", "_stop")

    def __init__(self, source: Source) -> None:
        self._blocks = _Blocks(source)
        self._start, self._stop = 0, source.size

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._stop - self._start

    def __getitem__(self, part: slice) -> FileView:
        """Return the view of a part; nothing is read."""
        start, stop, step = part.indices(len(self))
        assert step == 1, "views are contiguous"
        view = object.__new__(FileView)
        view._blocks = self._blocks
        view._start, view._stop = self._start + start, self._start + max(start, stop)
        return view

    def __bytes__(self) -> bytes:
        """Read the bytes."""
        return self._blocks.read(self._start, self._stop)


Data: TypeAlias = memoryview | FileView
"""The bytes of a file or of a part of it, in memory or still to be read."""


class _Blocks:
    """Reads a source, and keeps the blocks that were used last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, start: int, stop: int) -> bytes:
        if stop - start > _BLOCK:
            return self._source.part(start, stop).read()
        first, last = start // _BLOCK, max(stop - 1, start) // _BLOCK
        data = b"".join([self._block(number) for number in range(first, last + 1)]) if stop > start else b""
        return data[start - first * _BLOCK : stop - first * _BLOCK]

    def _block(self, number: int) -> bytes:
        with self._lock:
            block = self._kept.pop(number, None)
            if block is None:
                start = number * _BLOCK
                block = self._source.part(start, min(start + _BLOCK, self._source.size)).read()
            self._kept[number] = block
            if len(self._kept) > _BLOCKS:
                self._kept.popitem(last=False)
        return block


def load(data: Data) -> memoryview:
    """Return the bytes in memory; bytes that are there already are not copied."""
    return data if isinstance(data, memoryview) else memoryview(bytes(data))


def join_data(parts: Iterable[Data]) -> bytes:
    """Return several parts as one."""
    return b"".join(map(load, parts))


def have_same_bytes(one: Data, other: Data) -> bool:
    """Return whether two are equal; memory holds a piece of each at a time."""
    return len(one) == len(other) and all(a == b for a, b in zip(iter_pieces(one), iter_pieces(other), strict=True))


def iter_pieces(data: Data, size: int = _PIECE) -> Iterator[memoryview]:
    """Yield the bytes in pieces of ``size``, so that memory holds one of them at a time."""
    for start in range(0, len(data), size):
        yield load(data[start : start + size])
