"""The SHA-256 of a file that is being written, whose last part may still change."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FollowingHash"]

_STEP = 4 << 20
_BEHIND = 16 << 20
"""Bytes that may be final before they are hashed: reading flushes what is buffered."""


class FollowingHash:
    """Hashes a file right behind its writer, while its bytes are still in memory; ``read`` returns them by range.

    A member of a ZIP archive gets its header when all of it is written, so its bytes can't be hashed as they come.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._hasher = hashlib.sha256()
        self._at = 0

    def follow(self, stop: int) -> None:
        """Take note that no byte before ``stop`` changes any more."""
        if stop - self._at >= _BEHIND:
            self._hash(stop)

    def finish(self, stop: int) -> str:
        """Return the SHA-256 of all bytes before ``stop``, in hexadecimal digits."""
        self._hash(stop)
        return self._hasher.hexdigest()

    def _hash(self, stop: int) -> None:
        for start in range(self._at, stop, _STEP):
            self._hasher.update(self._read(start, min(start + _STEP, stop)))
        self._at = stop
