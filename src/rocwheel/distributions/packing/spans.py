"""Packing of parts of a large member on several machines, into the same bytes that `Packer` makes of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from zlib_ng import zlib_ng

from rocwheel.distributions.content.digest import Digest, Hasher
from rocwheel.distributions.packing.compression import (
    BLOCK,
    DEFLATED,
    STORED,
    WHOLE_LIMIT,
    deflate_block,
    expected_size,
    is_worthwhile,
    store_block,
)
from rocwheel.distributions.packing.cuts import piece_ranges
from rocwheel.distributions.packing.stream_codec import STREAM_PIECE, compress_piece, stream_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.packing.stream_codec import StreamFormat

__all__ = ["CUT_FROM", "CutFacts", "Span", "digest_spans", "encode_span", "level_for", "pack_span"]

CUT_FROM = WHOLE_LIMIT + (16 << 20)
"""Bytes of the smallest file that can be packed in parts: with any edit of its run path, it is in blocks."""


class Span(msgspec.Struct, frozen=True):
    """Those of the pieces that a content is cut into which begin from ``start`` on, and before ``stop`` if given."""

    start: int
    stop: int | None = None

    def ranges(self, content: Content, piece: int) -> list[tuple[int, int]]:
        """Return the (start, stop) pairs of the pieces of at most ``piece`` bytes."""
        return [cut for cut in piece_ranges(content, piece) if self._has(cut[0])]

    def _has(self, place: int) -> bool:
        return self.start <= place and (self.stop is None or place < self.stop)


class CutFacts(msgspec.Struct, frozen=True):
    """What a member is begun with, and the CRC-32 of the bytes of a span that were packed."""

    method: int
    bound: int
    """Bytes of the member at most."""
    crc32: int = 0


def level_for(content: Content, level: int) -> int:
    """Return the level for all spans of a content: 0, which stores, where samples say that deflating gains little."""
    return level if level and is_worthwhile(content.size, expected_size(content)) else 0


def pack_span(content: Content, span: Span, level: int, write: Callable[[bytes | memoryview], object]) -> CutFacts:
    """Pack a span of a content above `WHOLE_LIMIT`, block by block, and give ``write`` each packed block.

    ``level`` is what `level_for` says of the content, or 0 for one that is to be stored anyway.
    """
    crc32, is_deflated = 0, level > 0
    for start, stop in span.ranges(content, BLOCK):
        block = deflate_block(content, start, stop, level) if is_deflated else store_block(content, start, stop)
        crc32 = zlib_ng.crc32(block.original, crc32)
        write(block.data)
    return CutFacts(DEFLATED if is_deflated else STORED, content.size, crc32)


def encode_span(
    content: Content, span: Span, encoding: StreamFormat, write: Callable[[bytes | memoryview], object]
) -> CutFacts:
    """Compress a span of a content into streams of their own, and give ``write`` each."""
    for start, stop in span.ranges(content, STREAM_PIECE):
        write(compress_piece(content, start, stop, encoding))
    return CutFacts(STORED, stream_bound(content.size))


def digest_spans(content: Content, spans: Sequence[Span]) -> tuple[Digest, tuple[int, ...]]:
    """Return the digest of a content, and the CRC-32 of each of the spans that it consists of."""
    hasher, found = Hasher(), []
    for span in spans:
        crc32 = 0
        for start, stop in span.ranges(content, BLOCK):
            with content.open(start, stop) as buffers:
                for buffer in buffers:
                    hasher.update(buffer)
                    crc32 = zlib_ng.crc32(buffer, crc32)
        found.append(crc32)
    return hasher.digest(), tuple(found)
