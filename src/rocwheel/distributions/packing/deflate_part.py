"""Parts of one raw deflate stream (:rfc:`1951`), each made apart from the others.

A part ends with a sync flush, the last one with the final block: joined in order, they are one stream. Inside a part,
zeros are deflated once and repeated, and what hardly gets smaller is stored: device code that was compressed in place
consists of both. The rest goes through libdeflate, or in small pieces through zlib-ng, which knows the bytes before.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from itertools import groupby
from typing import Any

import deflate
from zlib_ng import zlib_ng

from rocwheel.distributions.packing.open_deflate import open_deflate

__all__ = ["WINDOW", "block_compressor", "deflate_part"]

WINDOW = 32 << 10
"""How far back deflate looks, in bytes."""

# zlib-ng's levels cost about what libdeflate's next higher ones do; its last is 9.
_BLOCK_LEVELS = (0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9)
# zlib-ng's window does not depend on it; fewer symbols to a Huffman table shrink device code by 2 % more than level 9.
_BLOCK_MEMORY = 7
_PIECE = 256 << 10
"""Bytes that are looked at to tell what kind of bytes they are."""
_SAMPLE = 4 << 10
_SAMPLES = 4
_SAMPLED = _SAMPLES * _SAMPLE
_SAMPLED_FROM = 32 << 10
"""Smaller pieces may be found whole in the bytes before them, which a sample knows nothing of."""
_LIBDEFLATE_FROM = 512 << 10
"""Fewer bytes gain less by libdeflate than they lose without those before them.

A single piece between others is mostly where dense bytes and zeros meet: to search for a final block is in vain there.
"""
_ZEROS = bytes(_PIECE)


class _Kind(Enum):
    ZEROS = auto()
    DENSE = auto()
    OTHER = auto()


def block_compressor(level: int, history: bytes = b"") -> Any:
    """Return zlib-ng's raw deflate compressor that costs about what libdeflate's ``level`` does.

    ``history`` is up to 32 KiB that come right before the bytes to compress.
    """
    return zlib_ng.compressobj(_BLOCK_LEVELS[level], zlib_ng.DEFLATED, -15, _BLOCK_MEMORY, 0, history)


def deflate_part(data: memoryview, start: int, level: int, *, is_last: bool) -> bytes:
    """Return the part of a stream for ``data`` from ``start`` on; the bytes before are the history of the part."""
    runs = _runs(data, start) if level else [(start, len(data), _Kind.OTHER)]
    last = len(runs) - 1
    return b"".join(
        _deflate_run(data, run, level, zlib_ng.Z_FINISH if is_last and number == last else zlib_ng.Z_SYNC_FLUSH)
        for number, run in enumerate(runs)
    )


def _runs(data: memoryview, start: int) -> list[tuple[int, int, _Kind]]:
    """Return (start, stop, kind) of the longest stretches whose pieces are of one kind."""
    pieces = [(at, min(at + _PIECE, len(data))) for at in range(start, len(data), _PIECE)] or [(start, start)]
    runs = []
    for kind, group in groupby(pieces, key=lambda piece: _kind_of(data[slice(*piece)])):
        members = list(group)
        runs.append((members[0][0], members[-1][1], kind))
    return runs


def _kind_of(piece: memoryview) -> _Kind:
    if piece[:_SAMPLE] == _ZEROS[: len(piece[:_SAMPLE])] and bytes(piece) == _ZEROS[: len(piece)]:
        return _Kind.ZEROS
    return _Kind.DENSE if len(piece) >= _SAMPLED_FROM and _is_dense(piece) else _Kind.OTHER


def _is_dense(piece: memoryview) -> bool:
    """Return whether a piece would shrink by less than a twentieth, judged by samples.

    Where one of them alone gains as much, as it does in most code, no other is looked at: to deflate all cost a
    twelfth of what packing the piece does.
    """
    step = len(piece) // _SAMPLES
    gained = 0
    for at in range(_SAMPLES):
        gained += _SAMPLE - len(deflate.deflate_compress(piece[at * step : at * step + _SAMPLE], 1))
        if gained * 20 >= _SAMPLED:
            return False
    return True


def _deflate_run(data: memoryview, run: tuple[int, int, _Kind], level: int, flush: int) -> bytes:
    start, stop, kind = run
    if kind is _Kind.ZEROS:
        return _deflated_zeros(stop - start, level, flush)
    if kind is _Kind.OTHER and level and stop - start >= _LIBDEFLATE_FROM:
        packed = _deflated_apart(data[start:stop], level, flush)
        if packed is not None:
            return packed
    history = bytes(data[max(start - WINDOW, 0) : start])
    return _deflated(data[start:stop], block_compressor(0 if kind is _Kind.DENSE else level, history), flush)


def _deflated_apart(data: memoryview, level: int, flush: int) -> bytes | None:
    if flush == zlib_ng.Z_FINISH:
        return bytes(deflate.deflate_compress(data, level))
    return open_deflate(data, level)


@lru_cache(maxsize=64)
def _deflated_zeros(size: int, level: int, flush: int) -> bytes:
    return _deflated(memoryview(bytes(size)), block_compressor(level), flush)


def _deflated(data: memoryview, compressor: Any, flush: int) -> bytes:
    head: bytes = compressor.compress(data)
    tail: bytes = compressor.flush(flush)
    return head + tail
