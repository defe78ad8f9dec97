"""Seals of files: hashes of their parts, which show later whether a file still has all of its bytes.

Most parts of a large file are hashed anyway by those who make them. A seal takes their hashes, and adds the rest's.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.errors import RocwheelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.foundation.files.reading.file_range import FileRange

__all__ = ["Seal", "SealedPart", "is_intact", "seal"]

_STEP = 4 << 20


class SealedPart(msgspec.Struct, frozen=True, array_like=True):
    """The bytes of a file from ``start`` to ``stop``, and their SHA-256."""

    start: int
    stop: int
    sha256: bytes


class Seal(msgspec.Struct, frozen=True, array_like=True):
    """The size of a file in bytes, parts of it in their order, and the SHA-256 of what lies outside of these."""

    size: int
    parts: tuple[SealedPart, ...]
    rest: bytes


def seal(size: int, parts: Sequence[SealedPart], read: Callable[[int, int], bytes]) -> Seal:
    """Return the seal of a file with parts of known hashes; ``read`` returns its bytes from a place to another."""
    return Seal(size, tuple(parts), _hash(read, _outside(size, parts)))


def is_intact(file: FileRange, sealed: Seal, executor: Executor) -> bool:
    """Return whether a whole file has the bytes that were sealed; workers of the ``executor`` hash its parts.

    A file that can't be read, or that changes meanwhile, is not intact.
    """
    if file.size != sealed.size:
        return False
    try:
        rest = _hash(partial(_read, file), _outside(sealed.size, sealed.parts))
        return rest == sealed.rest and all(executor.map(partial(_is_whole, file), sealed.parts))
    except RocwheelError:
        return False


def _is_whole(file: FileRange, part: SealedPart) -> bool:
    return _hash(partial(_read, file), [(part.start, part.stop)]) == part.sha256


def _read(file: FileRange, start: int, stop: int) -> bytes:
    return file.part(start, stop).read()


def _outside(size: int, parts: Sequence[SealedPart]) -> Iterator[tuple[int, int]]:
    """Yield where the bytes lie that no part has."""
    at = 0
    for part in parts:
        if at < part.start:
            yield at, part.start
        at = part.stop
    if at < size:
        yield at, size


def _hash(read: Callable[[int, int], bytes], ranges: Sequence[tuple[int, int]] | Iterator[tuple[int, int]]) -> bytes:
    hasher = hashlib.sha256()
    for start, stop in ranges:
        for at in range(start, stop, _STEP):
            hasher.update(read(at, min(at + _STEP, stop)))
    return hasher.digest()
