"""Digests of members: CRC-32 for the ZIP directory, SHA-256 for RECORD."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from zlib_ng import zlib_ng

from rocwheel.core.reading import release_pages
from rocwheel.distributions.content.content import SequenceContent

if TYPE_CHECKING:
    from rocwheel.distributions.content.content import Content

__all__ = ["Digest", "Hasher", "digest_bytes", "digest_content"]

_STEP = 16 << 20


class Digest(msgspec.Struct, frozen=True):
    """CRC-32, SHA-256 and number of a member's bytes."""

    crc32: int
    sha256: bytes
    size: int


class Hasher:
    """Computes the digest of bytes that come piece by piece."""

    def __init__(self) -> None:
        self._crc32, self._sha256, self._size = 0, hashlib.sha256(), 0

    def update(self, data: bytes | memoryview) -> None:
        """Add bytes to the digest. Pages of a mapped file are released on the way, so that memory stays flat."""
        view = memoryview(data)
        for start in range(0, len(view), _STEP):
            part = view[start : start + _STEP]
            self._crc32 = zlib_ng.crc32(part, self._crc32)
            self._sha256.update(part)
            release_pages(part)
        self._size += len(view)

    def digest(self) -> Digest:
        """Return the digest of all bytes so far."""
        return Digest(self._crc32, self._sha256.digest(), self._size)


def digest_bytes(data: bytes | memoryview) -> Digest:
    """Return the digest of bytes."""
    hasher = Hasher()
    hasher.update(data)
    return hasher.digest()


def digest_content(content: Content) -> Digest:
    """Return the digest of a content, read in steps of 16 MiB."""
    hasher = Hasher()
    _feed(hasher, content)
    return hasher.digest()


def _feed(hasher: Hasher, content: Content) -> None:
    if isinstance(content, SequenceContent):
        # Part by part: a range of several parts would be copied.
        for part in content.parts:
            _feed(hasher, part)
        return
    for start in range(0, content.size, _STEP):
        with content.open(start, min(start + _STEP, content.size)) as buffers:
            for buffer in buffers:
                hasher.update(buffer)
