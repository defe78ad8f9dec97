"""A few changes to a large file, which are applied as it streams, so that it is never held or copied whole."""

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
    """The bytes from ``start`` to ``stop`` of the new file: ``data``, then zeros.

    With ``source``, they are instead the bytes of the old file from that offset.
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
        """Return the bytes before the zeros; ``old`` is the whole old file."""
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
    """The changes that turn a file into another one of ``size`` bytes; all other bytes stay the same.

    Replacements are in ascending order and don't overlap. Beyond the end of the old file, the gaps are zeros.
    """

    size: int
    replacements: tuple[Replacement, ...] = ()

    def __post_init__(self) -> None:
        if any(before.stop > after.start for before, after in pairwise(self.replacements)):
            msg = "replacements overlap, or are out of order"
            raise ValueError(msg)

    @property
    def is_identity(self) -> bool:
        """Whether the new file is identical to the old one. Even growing or shrinking requires a replacement."""
        return not self.replacements

    def apply(self, data: Data, start: int = 0, stop: int | None = None) -> list[Data]:
        """Return the bytes of the new file from ``start`` to ``stop`` as buffers; ``data`` is the whole old file.

        Copies nothing, whatever the size of the file.
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
        """Yield the new file in pieces of a few MiB, for writing all of it with few calls."""
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
        """Return one patch for this patch followed by ``other``, whose replacements may not have a ``source``."""
        grown = [Replacement(self.size, other.size)] if self.size < other.size else []
        before = [replacement for replacement in (*self.replacements, *grown) if replacement.start < other.size]
        kept = [piece for replacement in before for piece in _around(replacement, other.replacements)]
        merged = sorted([*kept, *other.replacements], key=lambda replacement: replacement.start)
        return FilePatch(other.size, tuple(merged))


def _around(replacement: Replacement, holes: Sequence[Replacement]) -> Iterator[Replacement]:
    """Yield the parts of a replacement that none of the ``holes``, in ascending order, covers."""
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
    """Return a range of the old file, with zeros beyond its end."""
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
    """Write ``data`` with ``replacements``, in ascending order, at the position of ``file``; zeros become holes.

    Releases each replacement once it is written. ``size`` is where to stop in ``data``, if not at its end. The file
    ends there, even with a hole.
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
    """Write ``data`` with ``patch`` to the new file ``file``; zeros become holes."""
    write_patched(file, data, patch.replacements, size=patch.size)
    file.truncate(patch.size)


def _skip(file: IO[bytes], size: int) -> None:
    """Leave a hole. Seeks only if needed, because seeking flushes the buffer."""
    if size > 0:
        file.seek(size, os.SEEK_CUR)


def write_data(file: IO[bytes], data: Data) -> None:
    """Write bytes at the position of ``file``; memory holds one piece at a time."""
    for piece in iter_pieces(data):
        file.write(piece)


class _Patched(msgspec.Struct, frozen=True):
    """A range of a file that is not written yet."""

    data: Data
    patch: FilePatch
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> _Patched:
        """Return the range from ``start`` to ``stop``, both relative to the start of this one."""
        return msgspec.structs.replace(self, start=self.start + start, stop=self.start + stop)

    def read(self) -> bytes:
        """Return the bytes of the range."""
        return join_data(self.patch.apply(self.data, self.start, self.stop))


def patched_view(data: Data, patch: FilePatch) -> FileView:
    """Return ``data`` with ``patch`` as a view of a file that is not written yet; nothing is copied."""
    return FileView(_Patched(data, patch, 0, patch.size))
