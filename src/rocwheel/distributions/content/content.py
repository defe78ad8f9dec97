"""The bytes of an archive member, readable by range any number of times and by any worker."""

from __future__ import annotations

import threading
from bisect import bisect_right
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.core.patch import FilePatch
from rocwheel.core.reading import FileRange, iter_pieces, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from rocwheel.core.reading import Data

__all__ = ["BytesContent", "Content", "EditedContent", "FileContent", "PatchedContent", "SequenceContent"]


class Content(Protocol):
    """A source of ``size`` bytes. Implementations are plain values, so that any worker can open them."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def open(self, start: int, stop: int) -> AbstractContextManager[list[memoryview]]:
        """Yield the bytes from ``start`` to ``stop`` as a few buffers, valid inside the block.

        What comes from a file is read into memory of its own. Raises what `FileRange.read` does.
        """


class BytesContent(msgspec.Struct, frozen=True):
    """Bytes in memory, such as a generated file."""

    data: bytes

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield a view of the bytes."""
        yield [memoryview(self.data)[start:stop]]


class FileContent(msgspec.Struct, frozen=True):
    """A range of a file, unchanged."""

    source: FileRange

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.source.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Read the range of the file and yield it."""
        yield [memoryview(self.source.part(start, stop).read())]


class PatchedContent(msgspec.Struct, frozen=True):
    """A file with a patch that is applied while it is read."""

    source: FileRange
    patch: FilePatch

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.patch.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield the patched range; where nothing in it is changed, it is what was read, without a copy."""
        if self.patch.is_hole(start, stop):
            # The system maps one page of zeros again and again for bytes that nobody wrote.
            yield [memoryview(bytes(stop - start))]
            return
        with self.source.view() as old:
            parts = self.patch.apply(old, start, stop)
            data = load(parts[0]) if len(parts) == 1 else memoryview(_copied(parts, stop - start))
        yield [data]


class EditedContent:
    """A file with an edit that is planned when it is needed, such as another run path, or compressed device code.

    ``edit`` is another value where the same file would become another one. ``plan`` may use the workers that it gets.
    An edit is costly if planning it takes longer than reading the file.
    """

    def __init__(
        self, source: FileRange, edit: bytes, plan: Callable[[Executor | None], Content], *, is_costly: bool
    ) -> None:
        self.source = source
        self.edit = edit
        self.is_costly = is_costly
        self.source_sha256 = b""
        """The hash of the file, for those who have found it out."""
        self._plan = plan
        self._planned: Content | None = None
        self._lock = threading.Lock()

    def planned(self, executor: Executor | None = None) -> Content:
        """Return the edited file. Workers give no executor, as they would wait for one another."""
        with self._lock:
            if self._planned is None:
                self._planned = self._plan(executor)
            return self._planned

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.planned().size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield a range of the edited file."""
        with self.planned().open(start, stop) as buffers:
            yield buffers


class SequenceContent:
    """Several contents, one after the other, such as the members of a tar with their headers.

    ``joints`` are places at which it is best cut, in rising order: each follows from what begins there, so that they
    move along with it.
    """

    def __init__(self, parts: tuple[Content, ...], joints: tuple[int, ...] = ()) -> None:
        self.parts = parts
        self.joints = joints
        self._ends = tuple(accumulate(part.size for part in parts))

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._ends[-1] if self._ends else 0

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield the range of the one part that holds it, or a copy gathered from several parts."""
        touched = self._touched(start, stop)
        if len(touched) == 1:
            part, part_start, part_stop = touched[0]
            with part.open(part_start, part_stop) as buffers:
                yield buffers
        else:
            yield [memoryview(_gathered(touched, stop - start))]

    def _touched(self, start: int, stop: int) -> list[tuple[Content, int, int]]:
        """Return the parts that hold bytes of the range, with the range inside each."""
        touched = []
        for index in range(bisect_right(self._ends, start), len(self.parts)):
            part = self.parts[index]
            begin = self._ends[index] - part.size
            if begin >= stop:
                break
            if part.size:
                touched.append((part, max(start - begin, 0), min(stop - begin, part.size)))
        return touched


def _copied(parts: list[Data], size: int) -> bytearray:
    data = bytearray(size)
    position = 0
    for part in parts:
        for piece in iter_pieces(part):
            data[position : position + len(piece)] = piece
            position += len(piece)
    return data


def _gathered(pieces: list[tuple[Content, int, int]], size: int) -> bytearray:
    data = bytearray(size)
    position = 0
    for content, start, stop in pieces:
        with content.open(start, stop) as buffers:
            for buffer in buffers:
                data[position : position + len(buffer)] = buffer
                position += len(buffer)
    return data
