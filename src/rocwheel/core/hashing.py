"""Hashes files and parts of files.

Code that writes a large file hashes most parts of the file anyway. A seal uses these hashes and adds the hash of the
rest.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.core.errors import RocwheelError
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.core.reading import FileRange


_STEP = 1 << 20


def hash_file(path: Path, advance: Callable[[int], object] = SILENT.advance) -> str:
    """Return the SHA-256 of a file in hexadecimal. For ``advance``, see `hash_rest`. Raises `OSError`."""
    with open_regular(path) as file:
        return hash_rest(file, advance=advance).hex()


def hash_rest(file: IO[bytes], algorithm: str = "sha256", advance: Callable[[int], object] = SILENT.advance) -> bytes:
    """Return the hash of an open file from its current position to its end. Raises `OSError`.

    The file is read in steps of 1 MiB. ``advance`` is called with the number of bytes in each step.
    """
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    while data := file.read(_STEP):
        hasher.update(data)
        advance(len(data))
    return hasher.digest()


_FOLLOWING_STEP = 4 << 20
_BEHIND = 16 << 20
"""The maximum number of final bytes that wait to be hashed, because reading them flushes the write buffer."""


class FollowingHash:
    """Hashes a file shortly after it is written, while its bytes are still in memory.

    ``read`` returns a range of the bytes. A ZIP member's header is written after the member, so the member's bytes
    can't be hashed while they are written.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._hasher = hashlib.sha256()
        self._at = 0

    def follow(self, stop: int) -> None:
        """Record that the bytes before ``stop`` are final."""
        if stop - self._at >= _BEHIND:
            self._hash(stop)

    def finish(self, stop: int) -> str:
        """Return the SHA-256 of all bytes before ``stop``, in hexadecimal."""
        self._hash(stop)
        return self._hasher.hexdigest()

    def _hash(self, stop: int) -> None:
        for start in range(self._at, stop, _FOLLOWING_STEP):
            self._hasher.update(self._read(start, min(start + _FOLLOWING_STEP, stop)))
        self._at = stop


_PART = 4 << 20


class SealedPart(msgspec.Struct, frozen=True, array_like=True):
    """The bytes of a file from ``start`` to ``stop``, and their SHA-256."""

    start: int
    stop: int
    sha256: bytes


class Seal(msgspec.Struct, frozen=True, array_like=True):
    """A file's size in bytes, its parts in order, and the SHA-256 of the bytes outside the parts."""

    size: int
    parts: tuple[SealedPart, ...]
    rest: bytes


def seal(size: int, parts: Sequence[SealedPart], read: Callable[[int, int], bytes]) -> Seal:
    """Return the seal of a file with hashed parts. ``read`` returns the file's bytes between two offsets."""
    return Seal(size, tuple(parts), _hash(read, _outside(size, parts)))


def is_intact(file: FileRange, sealed: Seal, executor: Executor) -> bool:
    """Return whether a file still has the sealed bytes. Workers from the ``executor`` hash its parts.

    A file that can't be read, or that changes in the meantime, isn't intact.
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
    """Yield the ranges that no part covers."""
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
        for at in range(start, stop, _PART):
            hasher.update(read(at, min(at + _PART, stop)))
    return hasher.digest()


_SUFFIXES = frozenset({".py", ".pyc", ".toml"})
"""File extensions of code, which may be installed without its source, and of tables."""


@cache
def source_hash(place: Path) -> bytes:
    """Return the hash of a module, or of the names and contents of all modules and tables in a package."""
    if not place.is_dir():
        return hashlib.sha256(place.read_bytes()).digest()
    hasher = hashlib.sha256()
    for path in sorted(place.iterdir()):
        if path.suffix in _SUFFIXES or (path.is_dir() and path.name != "__pycache__"):
            hasher.update(b"%s\n" % path.name.encode() + source_hash(path))
    return hasher.digest()
