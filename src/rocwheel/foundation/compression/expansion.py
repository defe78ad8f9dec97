"""How far packed bytes may expand: a small file that unpacks to very much is a bomb, and no library."""

from __future__ import annotations

from typing import IO, Final

__all__ = ["MOST_EXPANDED", "BoundedStream", "most_unpacked"]

MOST_EXPANDED: Final = 200
"""Bytes that one packed byte may stand for where more than 1 GiB is unpacked; libraries come to about ten.

Of zeros, deflate makes 229 times less at its fastest and 1,032 at best, xz and Zstandard several thousands.
"""

_TRUSTED = 1 << 30


def most_unpacked(packed_size: int) -> int:
    """Return to how many bytes at most ``packed_size`` bytes may unpack: 1 GiB, or `MOST_EXPANDED` times as many."""
    return max(_TRUSTED, packed_size * MOST_EXPANDED)


class BoundedStream:
    """A stream to read forward that ends with a `ValueError` where it gives more than ``limit`` bytes."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        """Read from ``stream``, which is not closed."""
        self._stream, self._left, self._limit = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all that are left; raises `ValueError` behind the limit."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            msg = f"it holds more than {self._limit} bytes"
            raise ValueError(msg)
        return data
