"""Compression of members by the two ZIP methods that installers read: stored (0) and deflate (8, RFC 1951).

A member that fits one buffer is deflated whole by libdeflate. A larger one is cut into blocks that are deflated apart,
each ended by a sync flush (the last one by the final block), so that they join into one raw deflate stream. Which way a
member goes depends on its size alone: the bytes are the same whatever the number of workers.

`pack_bytes`, `rocwheel.distributions.packing.deflate_part.deflate_part` and
`rocwheel.distributions.packing.stream_codec.compress_bytes` are pure: bytes and a level in, packed bytes and facts out.
The other functions read a content and call one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import deflate
import msgspec

from rocwheel.distributions.content.digest import Digest, digest_bytes
from rocwheel.distributions.packing.deflate_part import WINDOW, deflate_part

if TYPE_CHECKING:
    from rocwheel.distributions.content.content import Content

__all__ = [
    "BLOCK",
    "DEFLATED",
    "STORED",
    "WHOLE_LIMIT",
    "Packed",
    "PackedBlock",
    "deflate_block",
    "expected_size",
    "history_of",
    "is_worthwhile",
    "join",
    "pack_bytes",
    "pack_whole",
    "store_block",
    "store_whole",
]

STORED = 0
DEFLATED = 8

WHOLE_LIMIT = 32 << 20
"""Members up to this size, in bytes, are deflated whole; larger ones are cut, so that all workers share them."""

BLOCK = 16 << 20
"""Bytes that one block of a larger member covers."""

_SAMPLE = 64 << 10
_SAMPLED_FROM = 1 << 20
_SAMPLE_EVERY = 16 << 20
_LEAST_SAMPLES = 3


class Packed(msgspec.Struct, frozen=True):
    """The packed bytes of a member, the ZIP method, and the digest of the very bytes that were packed."""

    data: bytes | bytearray | memoryview
    method: int
    digest: Digest
    is_kept: bool = False
    """Whether a cache had the packed bytes."""
    sha256: bytes = b""
    """The hash of the packed bytes, if these are deflated and a cache has them."""

    def __reduce__(self) -> tuple[type[Packed], tuple[object, ...]]:
        """Let pickle copy the bytes, for worker processes; threads share them."""
        return Packed, (bytes(self.data), self.method, self.digest, self.is_kept, self.sha256)


class PackedBlock(msgspec.Struct, frozen=True):
    """The packed bytes of one block, the bytes that were packed, and those before them that primed the compressor."""

    data: bytes | memoryview
    original: bytes | memoryview
    history: bytes | memoryview = b""
    key: bytes = b""
    """That of a cache, which has the packed bytes now; empty for none."""
    is_kept: bool = False
    """Whether a cache had them before."""
    sha256: bytes = b""
    """The hash of the packed bytes, if these are deflated and a cache has them."""

    def __reduce__(self) -> tuple[type[PackedBlock], tuple[object, ...]]:
        """Let pickle copy the bytes, for worker processes; threads share them."""
        data, original, history = bytes(self.data), bytes(self.original), bytes(self.history)
        return PackedBlock, (data, original, history, self.key, self.is_kept, self.sha256)


def expected_size(content: Content) -> int:
    """Return about how many bytes a large content deflates to at most, judged by one sample for every 16 MiB.

    For a small one, it is its size.
    """
    size = content.size
    if size < _SAMPLED_FROM:
        return size
    count = max(_LEAST_SAMPLES, size // _SAMPLE_EVERY)
    packed = 0
    for number in range(count):
        start = (size - _SAMPLE) * number // (count - 1)
        with content.open(start, start + _SAMPLE) as buffers:
            packed += len(deflate.deflate_compress(join(buffers), 1))
    return size * packed // (count * _SAMPLE)


def is_worthwhile(size: int, expected: int) -> bool:
    """Return whether to deflate a content of ``size`` bytes: where large ones gain less than 2 %, time is lost."""
    return size < _SAMPLED_FROM or _is_gain(size, expected)


def pack_whole(content: Content, level: int) -> Packed:
    """Deflate a content of at most `WHOLE_LIMIT` bytes with `pack_bytes`."""
    with content.open(0, content.size) as buffers:
        data = join(buffers)
    return pack_bytes(data, digest_bytes(data), level)


def pack_bytes(data: bytes | memoryview, digest: Digest, level: int) -> Packed:
    """Deflate bytes, whose digest is given, with libdeflate; store them where that gains less than 2 %."""
    packed = deflate.deflate_compress(data, level)
    if _is_gain(len(data), len(packed)):
        return Packed(packed, DEFLATED, digest)
    return Packed(data, STORED, digest)


def _is_gain(size: int, packed: int) -> bool:
    return packed <= size * 98 // 100


def store_whole(content: Content) -> Packed:
    """Return a content as it is."""
    with content.open(0, content.size) as buffers:
        data = join(buffers)
    return Packed(data, STORED, digest_bytes(data))


def store_block(content: Content, start: int, stop: int) -> PackedBlock:
    """Return one block of a content as it is."""
    with content.open(start, stop) as buffers:
        data = join(buffers)
    return PackedBlock(data, memoryview(data))


def history_of(start: int) -> int:
    """Return how many bytes before the one at ``start`` prime the compressor of the block that begins there."""
    return min(start, WINDOW)


def deflate_block(content: Content, start: int, stop: int, level: int) -> PackedBlock:
    """Deflate one block of a content; blocks joined in order are one raw deflate stream of the whole.

    That holds if the end of the block before is the ``history`` of this one, which is read once more.
    """
    history = history_of(start)
    with content.open(start - history, stop) as buffers:
        data = memoryview(join(buffers))
    packed = deflate_part(data, history, level, is_last=stop == content.size)
    return PackedBlock(packed, data[history:], data[:history])


def join(buffers: list[memoryview]) -> bytes | memoryview:
    """Return the bytes of buffers as one buffer, which is copied only if there are several."""
    return buffers[0] if len(buffers) == 1 else b"".join(buffers)
