"""The members that programs find in a ZIP archive which read it as a stream, as Java's do: from header to header."""

from __future__ import annotations

import struct
import zlib

__all__ = ["stream_names"]

_HEADER = struct.Struct("<4s5H3L2H")
_STREAMED, _DEFLATED = 8, 8
_PIECE = 1 << 16


def stream_names(data: bytes) -> list[bytes] | None:
    """Return the names in their order; none for an archive that such programs refuse.

    They believe no size of what is deflated, which says itself where it ends, and can't tell the size of what is stored
    and says it only behind.
    """
    names: list[bytes] = []
    at = 0
    while data.startswith(b"PK\3\4", at) and len(data) - at >= _HEADER.size:
        _, _, flags, method, _, _, _, packed, size, name_size, extra_size = _HEADER.unpack_from(data, at)
        name_at = at + _HEADER.size
        content = name_at + name_size + extra_size
        large = _large(data[name_at + name_size : content])
        names.append(data[name_at : name_at + name_size])
        end = _deflated_end(data, content) if method == _DEFLATED else content + _stored_size(packed, size, large)
        if end is None or (method != _DEFLATED and flags & _STREAMED):
            return None
        at = end + (_descriptor_size(data, end, is_large=large is not None) if flags & _STREAMED else 0)
    return names


def _deflated_end(data: bytes, start: int) -> int | None:
    """Return where a deflated stream ends, none where it doesn't."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    waiting = data[start:]
    try:
        while waiting and not inflater.eof:
            inflater.decompress(waiting, _PIECE)
            waiting = inflater.unconsumed_tail
    except zlib.error:
        return None
    return len(data) - len(inflater.unused_data) if inflater.eof else None


def _stored_size(packed: int, size: int, large: bytes | None) -> int:
    """Return the packed size, which is in the extra field behind the size where the header has no room for them."""
    if packed != 0xFFFFFFFF:
        return packed
    at = 8 if size == 0xFFFFFFFF else 0
    return int.from_bytes((large or b"")[at : at + 8], "little")


def _large(extra: bytes) -> bytes | None:
    """Return the extra field of large sizes, none where there is none."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            return extra[4 : 4 + length]
        extra = extra[4 + length :]
    return None


def _descriptor_size(data: bytes, at: int, *, is_large: bool) -> int:
    return 4 * data.startswith(b"PK\7\x08", at) + (20 if is_large else 12)
