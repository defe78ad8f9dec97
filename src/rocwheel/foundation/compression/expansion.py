"""How far packed bytes may expand: a small file that unpacks to very much is a bomb, and no library."""

from __future__ import annotations

from typing import IO, Final

__all__ = ["BOUND", "CAUTION", "MOST_EXPANDED", "BoundedStream", "ExpansionError", "most_unpacked"]

MOST_EXPANDED: Final = 200
"""Bytes that one packed byte may stand for where more than 1 GiB is unpacked; libraries come to about ten.

Of zeros, deflate makes 229 times less at its fastest and 1,032 at best, xz and Zstandard several thousands.
"""

BOUND: Final = f"at most 1 GiB, or {MOST_EXPANDED} times its size"
"""What `most_unpacked` allows, for messages."""

CAUTION: Final = "Don't unpack it unless you know who made it."
"""The remedy for what expands further: no other copy helps."""

_TRUSTED = 1 << 30


class ExpansionError(ValueError):
    """More comes out of packed bytes than `most_unpacked` allows: they aren't damaged."""


def most_unpacked(packed_size: int) -> int:
    """Return to how many bytes at most ``packed_size`` bytes may unpack: 1 GiB, or `MOST_EXPANDED` times as many."""
    return max(_TRUSTED, packed_size * MOST_EXPANDED)


class BoundedStream:
    """A stream to read forward that ends with an `ExpansionError` where it gives more than ``limit`` bytes."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        """Read from ``stream``, which is not closed."""
        self._stream, self._left, self._limit = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all that are left; raises `ExpansionError` behind the limit."""
        most = self._left + 1
        data = self._stream.read(min(size, most) if size >= 0 else most)
        self._left -= len(data)
        if self._left < 0:
            msg = f"unpacks to more than {self._limit} bytes"
            raise ExpansionError(msg)
        return data
