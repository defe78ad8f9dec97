"""Compresses members with deflate and xz in independent parts, which are then joined, with reproducible output.

libdeflate compresses better and faster than zlib, but it marks the last block of each stream as the final block. This
module clears that mark and appends a sync flush. No API reports where the final block begins, and it may begin at any
bit. Therefore, the code searches the last bytes for the block's header: the code lengths in it must form a complete
code, which rarely happens by chance. The block must inflate to exactly the last bytes of the data.

Every part ends with a sync flush, except the last part, which ends with the final block. Joined in order, the parts are
one stream. Within a part, runs of zeros are deflated once and repeated, and bytes that hardly shrink are stored. Device
code that was compressed in place consists of these two kinds of bytes. All other bytes are compressed by libdeflate.
Small pieces are compressed by zlib-ng, which uses the preceding bytes as its history.

Both stream formats allow concatenation: complete streams in sequence are a valid file with the concatenated content (xz
file format 1.2, section 2; :rfc:`8878`, section 3). ``tarfile``, GNU tar, ``xz``, and ``zstd`` read such files.

A member that fits into one buffer is compressed by libdeflate as a whole. A larger member is split into blocks that are
deflated independently and joined into one raw deflate stream. The choice depends only on the member's size, so the
output is the same for any number of workers.

`pack_bytes`, `deflate_part`, and `compress_bytes` are pure functions from bytes and a level to packed bytes. The other
functions read content and call one of these functions.

The points at which a sequence, such as a tar, is cut also depend on its content. If one member changes, the pieces
before it and most of the pieces after it don't change.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import zlib
from enum import Enum, auto
from functools import cache, lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import deflate
import msgspec
from zlib_ng import zlib_ng

from rocwheel.core.compression import QUICK_CODECS, codec_sample, codec_tools, zstd
from rocwheel.core.hashing import source_hash
from rocwheel.wheels.content import Digest, SequenceContent, digest_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.wheels.content import Content


_WINDOW = 32 << 10
_REACHES = (0, 2 << 10, 8 << 10, 32 << 10, 128 << 10)
"""The numbers of trailing bytes to search, in order. Most final blocks of device code are 2 to 5 kB long."""
_BLOCK_LIMIT = 1 << 20
"""A limit, in bytes, that is larger than any block from libdeflate."""
_LEAST_EVIDENCE = 256
_LEAST_SHARE = 200
"""The minimum size of a final block, and its maximum compression ratio.

Other bits never match both limits by chance.
"""
_HEADER_BITS = 3 + 5 + 5 + 4 + 19 * 3
_FLUSH = b"\0\0\xff\xff"
"""The length of an empty stored block, and its complement."""
_SPARE = 0b11100000
"""The bits of the last byte that contain that block's header if the final block ended before these bits."""


def _class(is_fit: Callable[[int], bool]) -> bytes:
    """Return a regular expression that matches any single byte for which ``is_fit`` is true."""
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
"""From the lowest bit: BFINAL=1, BTYPE=2, HLIT and HDIST with 5 bits each (30 and 31 are invalid), HCLEN with 4 bits.

If any code is as short as 4 bits, HCLEN is at least 8. That check halves the search.
"""
_PARTS = [0] + [128 >> length for length in range(1, 8)]
_SUMS = [sum(_PARTS[four >> bit & 7] for bit in (0, 3, 6, 9)) for four in range(1 << 12)]
"""The share of the code space, in 128ths, that four code lengths of 3 bits each use."""
_WHOLE = 128


def open_deflate(data: memoryview, level: int) -> bytes | None:
    """Return ``data`` deflated by libdeflate as part of a longer stream, or `None` if no final block is found.

    No final block is found for a few bytes of data, or if the final block is stored or uses deflate's fixed codes.
    """
    stream = bytes(deflate.deflate_compress(data, level))
    block = _find_final_block(stream, data)
    if block is None:
        return None
    bit, size = block
    opened = bytearray(stream)
    opened[bit >> 3] &= ~(1 << (bit & 7))
    # Whether the last three bits of the stream are outside its last block. If so, setting them changes nothing.
    changed = _shifted(stream[bit >> 3 : -1] + bytes([stream[-1] ^ _SPARE]), bit & 7)
    history, last = _split(data, size)
    is_spare = _inflated(changed, history) == last
    return bytes(opened) + (b"" if is_spare else b"\0") + _FLUSH


def _find_final_block(stream: bytes, data: memoryview) -> tuple[int, int] | None:
    """Return the final block's bit offset, and the number of bytes that it inflates to, or `None` if it isn't found."""
    for near, far in pairwise(_REACHES):
        start = max(len(stream) - far, 0)
        stop = min(len(stream) - near + _HEADER_BITS // 8 + 2, len(stream))
        for bit in _header_bits(stream[start:stop]):
            at = start * 8 + bit
            packed = _shifted(stream[at >> 3 :], at & 7)
            # The preceding bytes affect the content that the block inflates to, but not its size.
            size = len(_inflated(packed, bytes(_WINDOW)) or b"")
            history, last = _split(data, min(size, len(data)))
            if _inflated(packed, history) == last:
                return (at, size) if _is_evidence(last, history) else None
    return None


def _split(data: memoryview, size: int) -> tuple[bytes, bytes]:
    """Return the last ``size`` bytes, preceded by the bytes that they can refer to."""
    start = len(data) - size
    return bytes(data[max(start - _WINDOW, 0) : start]), bytes(data[start:])


def _is_evidence(last: bytes, history: bytes) -> bool:
    """Return whether the block's own bits are necessary to produce its bytes. Zeros prove nothing."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, -15, zdict=history)
    return len(compressor.compress(last) + compressor.flush()) >= _LEAST_EVIDENCE + len(last) // _LEAST_SHARE


def _header_bits(part: bytes) -> Iterator[int]:
    """Yield the bit offsets at which a final block with its own codes may begin, judging by its first code lengths."""
    for shift in range(8):
        shifted = _shifted(part, shift)
        for match in _HEADER.finditer(shifted):
            at = match.start()
            bits = int.from_bytes(shifted[at + 1 : at + 10], "little") >> 5
            # Whether up to 19 code lengths of 3 bits form a complete prefix code.
            lengths = bits >> 4 & (1 << 3 * ((bits & 15) + 4)) - 1
            taken = _SUMS[lengths & 4095] + _SUMS[lengths >> 12 & 4095] + _SUMS[lengths >> 24 & 4095]
            if taken + _SUMS[lengths >> 36 & 4095] + _SUMS[lengths >> 48] == _WHOLE:
                yield at * 8 + shift


def _shifted(part: bytes, bits: int) -> bytes:
    """Return the bytes, starting at one of the first byte's bits."""
    return (int.from_bytes(part, "little") >> bits).to_bytes(len(part), "little")


def _inflated(packed: bytes, history: bytes) -> bytes | None:
    """Return the inflated final block, or `None` if the bits aren't a block that ends in the last byte."""
    inflater = zlib.decompressobj(-15, zdict=history)
    try:
        data = inflater.decompress(packed, _BLOCK_LIMIT)
    except zlib.error:
        return None
    return data if inflater.eof and len(inflater.unused_data) <= 1 else None


WINDOW = 32 << 10
"""The maximum distance that deflate can refer back, in bytes."""

# A zlib-ng level costs about as much as libdeflate's next higher level. Its last level is 9.
_BLOCK_LEVELS = (0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9)
# zlib-ng's window doesn't depend on this. With fewer symbols per Huffman table, device code shrinks 2% more than at
# level 9.
_BLOCK_MEMORY = 7
_PIECE = 256 << 10
"""The number of bytes that are examined to determine their kind."""
_PART_SAMPLE = 4 << 10
_SAMPLES = 4
_SAMPLED = _SAMPLES * _PART_SAMPLE
_PART_SAMPLED_FROM = 32 << 10
"""The minimum size in bytes of pieces that are sampled.

Smaller pieces may be complete repetitions of preceding bytes, which a sample doesn't show.
"""
_LIBDEFLATE_FROM = 512 << 10
"""The minimum size in bytes for which libdeflate is used.

Smaller pieces gain less from libdeflate than they lose because it can't use the preceding bytes. A single piece between
other pieces is usually a border between dense bytes and zeros, where no final block is found.
"""
_ZEROS = bytes(_PIECE)


class _Kind(Enum):
    ZEROS = auto()
    DENSE = auto()
    OTHER = auto()


def block_compressor(level: int, history: bytes = b"") -> Any:
    """Return zlib-ng's raw deflate compressor at a level that costs about as much as libdeflate at ``level``.

    ``history`` is up to 32 KiB of bytes that come right before the bytes to compress.
    """
    return zlib_ng.compressobj(_BLOCK_LEVELS[level], zlib_ng.DEFLATED, -15, _BLOCK_MEMORY, 0, history)


def deflate_part(data: memoryview, start: int, level: int, *, is_last: bool) -> bytes:
    """Return the part of a stream that represents ``data`` from ``start`` onward.

    The bytes before ``start`` are its history.
    """
    runs = _runs(data, start) if level else [(start, len(data), _Kind.OTHER)]
    last = len(runs) - 1
    return b"".join(
        _deflate_run(data, run, level, zlib_ng.Z_FINISH if is_last and number == last else zlib_ng.Z_SYNC_FLUSH)
        for number, run in enumerate(runs)
    )


def _runs(data: memoryview, start: int) -> list[tuple[int, int, _Kind]]:
    """Return (start, stop, kind) for the longest runs of pieces of the same kind."""
    pieces = [(at, min(at + _PIECE, len(data))) for at in range(start, len(data), _PIECE)] or [(start, start)]
    runs = []
    for kind, group in groupby(pieces, key=lambda piece: _kind_of(data[slice(*piece)])):
        members = list(group)
        runs.append((members[0][0], members[-1][1], kind))
    return runs


def _kind_of(piece: memoryview) -> _Kind:
    if piece[:_PART_SAMPLE] == _ZEROS[: len(piece[:_PART_SAMPLE])] and bytes(piece) == _ZEROS[: len(piece)]:
        return _Kind.ZEROS
    return _Kind.DENSE if len(piece) >= _PART_SAMPLED_FROM and _is_dense(piece) else _Kind.OTHER


def _is_dense(piece: memoryview) -> bool:
    """Return whether samples indicate that a piece would shrink by less than a twentieth.

    Stops at the first sample that shrinks more, which is typical for code. Deflating all samples takes a twelfth of the
    time that it takes to pack the piece.
    """
    step = len(piece) // _SAMPLES
    gained = 0
    for at in range(_SAMPLES):
        gained += _PART_SAMPLE - len(deflate.deflate_compress(piece[at * step : at * step + _PART_SAMPLE], 1))
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


StreamFormat = Literal["xz", "zst"]

STREAM_PIECE = 16 << 20
"""The number of content bytes in each piece: twice the window of xz."""

ENCODER_MEMORY = 94 << 20
"""The peak memory of one encoder in bytes, without its input and output (xz(1), preset 6)."""

_GROWTH = 4 << 20
_XZ_PRESET = 6
_ZSTD_LEVEL = 1
"""The zstd level. One core packs 616 MB of development files to 122 MB in 1.9 s.

Level 3 takes 4.3 s and produces 109 MB, and level 9 takes 17 s and produces 92 MB.
"""


def stream_bound(size: int) -> int:
    """Return an upper bound on the compressed size of ``size`` bytes of content that is compressed in pieces."""
    # Incompressible data grows by far less.
    return size + (size >> 4) + _GROWTH


def compress_piece(content: Content, start: int, stop: int, format_: StreamFormat) -> bytes:
    """Return the bytes from ``start`` to ``stop``, compressed into one complete stream."""
    with content.open(start, stop) as buffers:
        return compress_bytes(buffers, format_)


def compress_bytes(buffers: list[memoryview], format_: StreamFormat) -> bytes:
    """Return the concatenated ``buffers``, compressed into one complete stream."""
    if format_ == "xz":
        return _feed(lzma.LZMACompressor(preset=_XZ_PRESET), buffers)
    return _feed(zstd.ZstdCompressor(_ZSTD_LEVEL), buffers)


def _feed(compressor: lzma.LZMACompressor | zstd.ZstdCompressor, buffers: list[memoryview]) -> bytes:
    return b"".join([*(compressor.compress(buffer) for buffer in buffers), compressor.flush()])


STORED = 0
DEFLATED = 8

WHOLE_LIMIT = 32 << 20
"""The maximum size in bytes of members that are deflated as a whole. Larger members are split among all workers."""

BLOCK = 16 << 20
"""The number of bytes in one block of a larger member."""

_SAMPLE = 64 << 10
_SAMPLED_FROM = 1 << 20
_SAMPLE_EVERY = 16 << 20
_LEAST_SAMPLES = 3


class Packed(msgspec.Struct, frozen=True):
    """A member's packed bytes, its ZIP method, and the digest of exactly the bytes that were packed."""

    data: bytes | bytearray | memoryview
    method: int
    digest: Digest
    is_kept: bool = False
    """Whether the packed bytes come from a cache."""
    sha256: bytes = b""
    """The hash of the packed bytes, if they are deflated and in a cache."""

    def __reduce__(self) -> tuple[type[Packed], tuple[object, ...]]:
        """Copy the bytes when pickled for worker processes; threads share them."""
        return Packed, (bytes(self.data), self.method, self.digest, self.is_kept, self.sha256)


class PackedBlock(msgspec.Struct, frozen=True):
    """A block's packed bytes, the bytes that were packed, and the preceding bytes that primed the compressor."""

    data: bytes | memoryview
    original: bytes | memoryview
    history: bytes | memoryview = b""
    key: bytes = b""
    """The cache key of the packed bytes, or empty if they aren't in a cache."""
    is_kept: bool = False
    """Whether a cache already had the packed bytes."""
    sha256: bytes = b""
    """The hash of the packed bytes, if they are deflated and in a cache."""

    def __reduce__(self) -> tuple[type[PackedBlock], tuple[object, ...]]:
        """Copy the bytes when pickled for worker processes; threads share them."""
        data, original, history = bytes(self.data), bytes(self.original), bytes(self.history)
        return PackedBlock, (data, original, history, self.key, self.is_kept, self.sha256)


def expected_size(content: Content) -> int:
    """Return an estimated upper bound on the deflated size of large content, based on one sample for each 16 MiB.

    For small content, return its size.
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
    """Return whether to deflate ``size`` bytes of content.

    Large content that shrinks by less than 2% isn't worth deflating.
    """
    return size < _SAMPLED_FROM or _is_gain(size, expected)


def pack_whole(content: Content, level: int) -> Packed:
    """Deflate content of at most `WHOLE_LIMIT` bytes with `pack_bytes`."""
    with content.open(0, content.size) as buffers:
        data = join(buffers)
    return pack_bytes(data, digest_bytes(data), level)


def pack_bytes(data: bytes | memoryview, digest: Digest, level: int) -> Packed:
    """Deflate bytes whose digest is known, using libdeflate, or store them if deflating saves less than 2%."""
    packed = deflate.deflate_compress(data, level)
    if _is_gain(len(data), len(packed)):
        return Packed(packed, DEFLATED, digest)
    return Packed(data, STORED, digest)


def _is_gain(size: int, packed: int) -> bool:
    return packed <= size * 98 // 100


def store_whole(content: Content) -> Packed:
    """Return the content uncompressed."""
    with content.open(0, content.size) as buffers:
        data = join(buffers)
    return Packed(data, STORED, digest_bytes(data))


def store_block(content: Content, start: int, stop: int) -> PackedBlock:
    """Return one block of the content uncompressed."""
    with content.open(start, stop) as buffers:
        data = join(buffers)
    return PackedBlock(data, memoryview(data))


def history_of(start: int) -> int:
    """Return how many of the bytes before ``start`` prime the compressor for the block that begins there."""
    return min(start, WINDOW)


def deflate_block(content: Content, start: int, stop: int, level: int) -> PackedBlock:
    """Deflate one block of the content. If they are joined in order, the blocks form the content's raw deflate stream.

    This requires that the previous block ends with this block's ``history``, which is read again.
    """
    history = history_of(start)
    with content.open(start - history, stop) as buffers:
        data = memoryview(join(buffers))
    packed = deflate_part(data, history, level, is_last=stop == content.size)
    return PackedBlock(packed, data[history:], data[:history])


def join(buffers: list[memoryview]) -> bytes | memoryview:
    """Return the concatenated ``buffers``, which are copied only if there are several."""
    return buffers[0] if len(buffers) == 1 else b"".join(buffers)


_PACKING_CODE = ("member_cache.py", "member_compression.py", "packing.py")
"""The modules that affect the packed bytes."""


@cache
def codec_identity() -> bytes:
    """Return a value that differs if packed bytes may differ due to codec versions, packing code, or processor.

    Two versions of rocwheel with the same packing code have the same identity.
    """
    tools = [f"{name} {version}" for name, version in sorted(codec_tools().items())]
    samples = [codec_sample(codec) for codec in QUICK_CODECS]
    code = b"".join(source_hash(Path(__file__).with_name(name)) for name in _PACKING_CODE)
    return hashlib.sha256("\n".join(tools + samples).encode() + code).digest()


@cache
def xz_identity() -> bytes:
    """Return the identity of xz, whose library doesn't report its version to Python, and whose sample takes longer."""
    return hashlib.sha256(codec_identity() + codec_sample("xz").encode()).digest()


def block_ranges(size: int, block: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the blocks that ``size`` bytes are split into."""
    return [(start, min(start + block, size)) for start in range(0, size, block)]


def piece_ranges(content: Content, piece: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the content's pieces, each of at most ``piece`` bytes.

    Content that is no larger than a piece isn't split.
    """
    if content.size <= piece or not isinstance(content, SequenceContent):
        return block_ranges(content.size, piece)
    sections = pairwise([0, *content.joints, content.size])
    return [(start + at, start + end) for start, stop in sections for at, end in block_ranges(stop - start, piece)]
