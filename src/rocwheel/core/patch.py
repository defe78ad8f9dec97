"""Describes a few changes to a large file.

The changes are applied while the file is streamed, without a copy in memory.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.core.reading import Data, FileView, iter_pieces, join_data, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_ZEROS = memoryview(bytes(1 << 20))
_PIECE = 4 << 20


class Replacement(msgspec.Struct, frozen=True):
    """A replacement for the bytes from ``start`` to ``stop`` in the new file: ``data``, then zeros.

    With ``source``, the replacement is the bytes of the old file from that offset.
    """

    start: int
    stop: int
    data: bytes | Data = b""
    source: int | None = None

    @classmethod
    def of(cls, start: int, data: bytes | Data) -> Replacement:
        """Return a replacement that writes ``data`` at ``start``."""
        return cls(start, start + len(data), data)

    def content(self, old: Data) -> Data:
        """Return the bytes before the zeros. ``old`` is the complete old file."""
        if self.source is not None:
            return old[self.source : self.source + self.stop - self.start]
        return memoryview(self.data) if isinstance(self.data, bytes) else self.data

    def part(self, start: int, stop: int) -> Replacement:
        """Return the part of this replacement between two offsets inside it."""
        skipped = start - self.start
        if self.source is not None:
            return Replacement(start, stop, source=self.source + skipped)
        return Replacement(start, stop, self.data[skipped : stop - self.start])


class FilePatch(msgspec.Struct, frozen=True):
    """The changes that turn a file into a file of ``size`` bytes. All other bytes stay the same.

    Replacements are in ascending order and don't overlap. After the end of the old file, the gaps are zeros.
    """

    size: int
    replacements: tuple[Replacement, ...] = ()

    def __post_init__(self) -> None:
        if any(before.stop > after.start for before, after in pairwise(self.replacements)):
            msg = "replacements overlap, or are out of order"
            raise ValueError(msg)

    @property
    def is_identity(self) -> bool:
        """Whether the new file is identical to the old file. A change in size also requires a replacement."""
        return not self.replacements

    def apply(self, data: Data, start: int = 0, stop: int | None = None) -> list[Data]:
        """Return the bytes of the new file from ``start`` to ``stop`` as buffers. ``data`` is the complete old file.

        Copies nothing, regardless of the file's size.
        """
        stop = self.size if stop is None else min(stop, self.size)
        buffers: list[Data] = []
        position = start
        index = bisect_right(self.replacements, start, key=lambda replacement: replacement.stop)
        for replacement in self.replacements[index:]:
            if replacement.start >= stop:
                break
            buffers += _old(data, position, replacement.start)
            position = max(position, replacement.start)
            end = min(replacement.stop, stop)
            new = replacement.part(position, end).content(data)
            buffers += [new] if len(new) else []
            buffers += _zeros(end - position - len(new))
            position = end
        return buffers + _old(data, position, stop)

    def pieces(self, data: Data) -> Iterator[memoryview | bytes]:
        """Yield the new file in pieces of a few MiB, so that writing the file takes only a few calls."""
        for start in range(0, self.size, _PIECE):
            parts = self.apply(data, start, start + _PIECE)
            yield load(parts[0]) if len(parts) == 1 else join_data(parts)

    def is_hole(self, start: int, stop: int) -> bool:
        """Return whether a replacement fills the new file from ``start`` to ``stop`` with zeros."""
        index = bisect_right(self.replacements, start, key=lambda replacement: replacement.stop)
        if index == len(self.replacements):
            return False
        covering = self.replacements[index]
        return covering.source is None and covering.start + len(covering.data) <= start and stop <= covering.stop

    def then(self, other: FilePatch) -> FilePatch:
        """Return a single patch for this patch followed by ``other``.

        The replacements in ``other`` must not have a ``source``.
        """
        grown = [Replacement(self.size, other.size)] if self.size < other.size else []
        before = [replacement for replacement in (*self.replacements, *grown) if replacement.start < other.size]
        kept = [piece for replacement in before for piece in _around(replacement, other.replacements)]
        merged = sorted([*kept, *other.replacements], key=lambda replacement: replacement.start)
        return FilePatch(other.size, tuple(merged))


def _around(replacement: Replacement, holes: Sequence[Replacement]) -> Iterator[Replacement]:
    """Yield the parts of a replacement that ``holes`` doesn't cover. ``holes`` is in ascending order."""
    position = replacement.start
    for hole in holes:
        if hole.stop <= position or hole.start >= replacement.stop:
            continue
        if hole.start > position:
            yield replacement.part(position, hole.start)
        position = hole.stop
    if position < replacement.stop:
        yield replacement.part(position, replacement.stop)


def _old(data: Data, start: int, stop: int) -> list[Data]:
    """Return a range of the old file, with zeros after its end."""
    kept = data[start:stop] if start < stop else data[:0]
    return [*([kept] if len(kept) else []), *_zeros(stop - max(start, len(data)))]


def _zeros(size: int) -> list[Data]:
    return [_ZEROS[: size - start] for start in range(0, size, len(_ZEROS))]


def fill_gaps(pieces: Iterable[Replacement], start: int, stop: int = 0) -> Iterator[Replacement]:
    """Yield ``pieces``, in ascending order from ``start``, with zeros between them and up to ``stop``."""
    for piece in pieces:
        if start < piece.start:
            yield Replacement(start, piece.start)
        yield piece
        start = piece.stop
    if start < stop:
        yield Replacement(start, stop)


def write_patched(file: IO[bytes], data: Data, replacements: Iterable[Replacement], *, size: int | None = None) -> None:
    """Write ``data`` with ``replacements``, in ascending order, at the position of ``file``. Zeros become holes.

    Releases each replacement after writing it. If ``size`` is given, only this part of ``data`` is written. The file
    ends at that point, even if it ends with a hole.
    """
    position = 0
    for replacement in replacements:
        write_data(file, data[position : replacement.start])
        _skip(file, replacement.start - max(position, len(data)))
        content = replacement.content(data)
        write_data(file, content)
        _skip(file, replacement.stop - replacement.start - len(content))
        position = replacement.stop
    write_data(file, data[position:size])
    file.truncate()


def write_patch(file: IO[bytes], data: Data, patch: FilePatch) -> None:
    """Write ``data`` with ``patch`` to the new file ``file``. Zeros become holes."""
    write_patched(file, data, patch.replacements, size=patch.size)
    file.truncate(patch.size)


def _skip(file: IO[bytes], size: int) -> None:
    """Leave a hole. Seeks only if needed, because seeking flushes the buffer."""
    if size > 0:
        file.seek(size, os.SEEK_CUR)


def write_data(file: IO[bytes], data: Data) -> None:
    """Write bytes at the position of ``file``. Only one piece at a time is in memory."""
    for piece in iter_pieces(data):
        file.write(piece)


class _Patched(msgspec.Struct, frozen=True):
    """A range of a file that isn't written yet."""

    data: Data
    patch: FilePatch
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> _Patched:
        """Return the range from ``start`` to ``stop``, both relative to the start of this range."""
        return msgspec.structs.replace(self, start=self.start + start, stop=self.start + stop)

    def read(self) -> bytes:
        """Return the bytes of the range."""
        return join_data(self.patch.apply(self.data, self.start, self.stop))


def patched_view(data: Data, patch: FilePatch) -> FileView:
    """Return ``data`` with ``patch`` as a view of a file that isn't written yet. Nothing is copied."""
    return FileView(_Patched(data, patch, 0, patch.size))
