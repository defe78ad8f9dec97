"""Raw deflate streams, opened by zlib."""

from __future__ import annotations

import zlib

__all__ = ["inflate"]


def inflate(packed: bytes | bytearray) -> bytes:
    """Return the content of one whole raw stream, which ends where the bytes do."""
    inflater = zlib.decompressobj(-15)
    data = inflater.decompress(packed)
    assert inflater.eof
    assert not inflater.unused_data
    return data
