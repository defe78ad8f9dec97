"""Raw deflate streams (:rfc:`1951`) by libdeflate which other streams can follow, as parts of one.

libdeflate packs more in less time than zlib, but marks the last block of each stream as the final one. Here the mark is
taken away, and a sync flush put behind it. No interface tells where that block begins, which may be at any bit. So its
header is searched for in the last bytes: the lengths of the codes in it have to add up, which few other bits do, and
what begins there has to inflate to the very last bytes of the data.
"""

from __future__ import annotations

import re
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

import deflate
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["open_deflate"]

_WINDOW = 32 << 10
_REACHES = (0, 2 << 10, 8 << 10, 32 << 10, 128 << 10)
"""How many of the last bytes are searched, step by step; most final blocks of device code have 2 to 5 kB."""
_BLOCK_LIMIT = 1 << 20
"""More bytes than libdeflate ever puts into a block."""
_LEAST_EVIDENCE = 256
_LEAST_SHARE = 200
"""Packed bytes that the data of a final block need, and data for each at most: no other bits give these by chance."""
_HEADER_BITS = 3 + 5 + 5 + 4 + 19 * 3
_FLUSH = b"\0\0\xff\xff"
"""The length of an empty stored block and its complement."""
_SPARE = 0b11100000
"""The bits of the last byte that take the header of that block, if the final block ended before them."""


def _class(is_fit: Callable[[int], bool]) -> bytes:
    """Return the regular expression of one byte of those that fit."""
    return b"[%s]" % re.escape(bytes(byte for byte in range(256) if is_fit(byte)))


_HEADER = re.compile(
    b"(?=%s%s%s)"
    % (
        _class(lambda byte: byte & 7 == 0b101 and byte >> 3 < 30),
        _class(lambda byte: byte & 31 < 30),
        _class(lambda byte: bool(byte & 1)),
    ),
    re.DOTALL,
)
"""From the lowest bit on BFINAL=1, BTYPE=2, HLIT and HDIST of 5 bits, of which 30 and 31 mean nothing, and HCLEN of 4.

HCLEN is at least 8 wherever a code is as short as 4 bits, which saves half of the search.
"""
_PARTS = [0] + [128 >> length for length in range(1, 8)]
_SUMS = [sum(_PARTS[four >> bit & 7] for bit in (0, 3, 6, 9)) for four in range(1 << 12)]
"""What codes of four lengths, 3 bits each, take of all codes, in 128ths."""
_WHOLE = 128


class _FinalBlock(msgspec.Struct, frozen=True):
    """Where a block begins, in bits, its bytes shifted to a whole byte, and how many bytes they inflate to."""

    bit: int
    packed: bytes
    size: int


def open_deflate(data: memoryview, level: int) -> bytes | None:
    """Return ``data`` deflated by libdeflate, as part of a stream that goes on; ``None`` if no final block is found.

    That is so for data of a few bytes, and where the final block is stored or has the codes that deflate fixes.
    """
    stream = bytes(deflate.deflate_compress(data, level))
    block = _find_final_block(stream, data)
    if block is None:
        return None
    opened = bytearray(stream)
    opened[block.bit >> 3] &= ~(1 << (block.bit & 7))
    is_spare = _is_spare(stream, block, data)
    return bytes(opened) + (b"" if is_spare else b"\0") + _FLUSH


def _is_spare(stream: bytes, block: _FinalBlock, data: memoryview) -> bool:
    """Return whether the last three bits of the stream are not part of its last block: set, they change nothing."""
    changed = _shifted(stream[block.bit >> 3 : -1] + bytes([stream[-1] ^ _SPARE]), block.bit & 7)
    history, last = _split(data, block.size)
    return _inflated(changed, history) == last


def _find_final_block(stream: bytes, data: memoryview) -> _FinalBlock | None:
    for near, far in pairwise(_REACHES):
        start = max(len(stream) - far, 0)
        stop = min(len(stream) - near + _HEADER_BITS // 8 + 2, len(stream))
        for bit in _header_bits(stream[start:stop]):
            at = start * 8 + bit
            packed = _shifted(stream[at >> 3 :], at & 7)
            # What comes before it decides what the block inflates to, not how much that is.
            size = len(_inflated(packed, bytes(_WINDOW)) or b"")
            history, last = _split(data, min(size, len(data)))
            if _inflated(packed, history) == last:
                return _FinalBlock(at, packed, size) if _is_evidence(last, history) else None
    return None


def _split(data: memoryview, size: int) -> tuple[bytes, bytes]:
    """Return the last bytes, ``size`` of them, after those that they can refer to."""
    start = len(data) - size
    return bytes(data[max(start - _WINDOW, 0) : start]), bytes(data[start:])


def _is_evidence(last: bytes, history: bytes) -> bool:
    """Return whether no other bits than those of the block can have given its bytes: zeros prove nothing."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, -15, zdict=history)
    return len(compressor.compress(last) + compressor.flush()) >= _LEAST_EVIDENCE + len(last) // _LEAST_SHARE


def _header_bits(part: bytes) -> Iterator[int]:
    """Yield the bits where a final block with codes of its own may begin: the lengths of its first code add up."""
    for shift in range(8):
        shifted = _shifted(part, shift)
        for match in _HEADER.finditer(shifted):
            at = match.start()
            bits = int.from_bytes(shifted[at + 1 : at + 10], "little") >> 5
            if _is_code(bits >> 4 & (1 << 3 * ((bits & 15) + 4)) - 1):
                yield at * 8 + shift


def _is_code(lengths: int) -> bool:
    """Return whether up to 19 lengths of 3 bits are those of a complete prefix code."""
    taken = _SUMS[lengths & 4095] + _SUMS[lengths >> 12 & 4095] + _SUMS[lengths >> 24 & 4095]
    return taken + _SUMS[lengths >> 36 & 4095] + _SUMS[lengths >> 48] == _WHOLE


def _shifted(part: bytes, bits: int) -> bytes:
    """Return the bytes from a bit of the first byte on."""
    return (int.from_bytes(part, "little") >> bits).to_bytes(len(part), "little")


def _inflated(packed: bytes, history: bytes) -> bytes | None:
    """Return what a final block inflates to, or ``None`` if it isn't one that ends in the last byte."""
    inflater = zlib.decompressobj(-15, zdict=history)
    try:
        data = inflater.decompress(packed, _BLOCK_LIMIT)
    except zlib.error:
        return None
    return data if inflater.eof and len(inflater.unused_data) <= 1 else None
