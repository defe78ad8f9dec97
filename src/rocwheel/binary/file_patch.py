"""Few changes to a large file, applied while it streams, so that the whole of it is never held or copied."""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.runpath_patch import ElfPatch

__all__ = ["FilePatch", "Replacement", "write_patched"]

_ZEROS = memoryview(bytes(1 << 20))


class Replacement(msgspec.Struct, frozen=True, order=True):
    """New bytes for the range from ``start`` to ``stop`` of a file: ``data``, and zeros for the rest of it."""

    start: int
    stop: int
    data: bytes | memoryview


class FilePatch(msgspec.Struct, frozen=True):
    """What turns a file into another of ``size`` bytes; what no replacement covers stays as it is.

    Replacements are in rising order and don't overlap.
    """

    size: int
    replacements: tuple[Replacement, ...]

    def __post_init__(self) -> None:
        if any(before.stop > after.start for before, after in pairwise(self.replacements)):
            msg = "replacements overlap, or are out of order"
            raise ValueError(msg)

    def apply(self, data: memoryview, start: int, stop: int) -> list[memoryview]:
        """Return the new file's bytes from ``start`` to ``stop`` as buffers; ``data`` is the whole old file."""
        buffers: list[memoryview] = []
        position = start
        index = bisect_right(self.replacements, start, key=lambda replacement: replacement.stop)
        for replacement in self.replacements[index:]:
            if replacement.start >= stop:
                break
            buffers += _slice(data, position, replacement.start)
            position = max(position, replacement.start)
            end = min(replacement.stop, stop)
            new = memoryview(replacement.data)[position - replacement.start : end - replacement.start]
            buffers += [new] if len(new) else []
            buffers += _zeros(end - position - len(new))
            position = end
        return buffers + _slice(data, position, stop)

    def join(self, other: ElfPatch, *, old_size: int) -> FilePatch:
        """Return the patch that makes these changes and those of ``other`` to a file of ``old_size`` bytes.

        Raises `ValueError` when they overlap: a run path and device code lie in different sections.
        """
        changes = [Replacement(offset, offset + len(new), new) for offset, new in other.replacements]
        if other.size > old_size:
            tail = other.tail.rjust(other.size - old_size, b"\0")
            changes.append(Replacement(old_size, other.size, tail))
        return FilePatch(max(self.size, other.size), tuple(sorted([*self.replacements, *changes])))


def _slice(data: memoryview, start: int, stop: int) -> list[memoryview]:
    return [data[start:stop]] if start < stop else []


def _zeros(size: int) -> list[memoryview]:
    return [_ZEROS] * (size // len(_ZEROS)) + ([_ZEROS[: size % len(_ZEROS)]] if size % len(_ZEROS) else [])


def write_patched(file: IO[bytes], data: memoryview, replacements: Iterable[Replacement]) -> None:
    """Write ``data`` with ``replacements``, in rising order, where ``file`` stands; what becomes zero is left a hole.

    Each replacement is let go of once written.
    """
    position = 0
    for replacement in replacements:
        file.write(data[position : replacement.start])
        file.write(replacement.data)
        file.seek(replacement.stop - replacement.start - len(replacement.data), os.SEEK_CUR)
        position = replacement.stop
    file.write(data[position:])
