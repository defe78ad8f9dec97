"""Compresses members by deflate and xz in parts that are made apart and joined, the same bytes every time.

libdeflate packs more in less time than zlib, but marks the last block of each stream as the final one. Here the mark is
taken away, and a sync flush put behind it. No interface tells where that block begins, which may be at any bit. So its
header is searched for in the last bytes: the lengths of the codes in it have to add up, which few other bits do, and
what begins there has to inflate to the very last bytes of the data.

A part ends with a sync flush, the last one with the final block: joined in order, they are one stream. Inside a part,
zeros are deflated once and repeated, and what hardly gets smaller is stored: device code that was compressed in place
consists of both. The rest goes through libdeflate, or in small pieces through zlib-ng, which knows the bytes before.

Both formats define the concatenation of complete streams as a valid file whose content is the concatenation (xz file
format 1.2, section 2; :rfc:`8878`, section 3), and ``tarfile``, GNU tar, ``xz`` and ``zstd`` read it so.

A member that fits one buffer is deflated whole by libdeflate. A larger one is cut into blocks that are deflated apart,
each ended by a sync flush (the last one by the final block), so that they join into one raw deflate stream. Which way a
member goes depends on its size alone: the bytes are the same whatever the number of workers.

`pack_bytes`, `rocwheel.wheels.member_compression.deflate_part` and
`rocwheel.wheels.member_compression.compress_bytes` are pure: bytes and a level in, packed bytes and facts out.
The other functions read a content and call one of them.

The cuts of a sequence, such as a tar, also follow from what is in it: where one of its members changes, the pieces
before it and most of those behind it are the same as before.
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


def open_deflate(data: memoryview, level: int) -> bytes | None:
    """Return ``data`` deflated by libdeflate, as part of a stream that goes on; ``None`` if no final block is found.

    That is so for data of a few bytes, and where the final block is stored or has the codes that deflate fixes.
    """
    stream = bytes(deflate.deflate_compress(data, level))
    block = _find_final_block(stream, data)
    if block is None:
        return None
    bit, size = block
    opened = bytearray(stream)
    opened[bit >> 3] &= ~(1 << (bit & 7))
    # Whether the last three bits of the stream are not part of its last block: set, they change nothing.
    changed = _shifted(stream[bit >> 3 : -1] + bytes([stream[-1] ^ _SPARE]), bit & 7)
    history, last = _split(data, size)
    is_spare = _inflated(changed, history) == last
    return bytes(opened) + (b"" if is_spare else b"\0") + _FLUSH


def _find_final_block(stream: bytes, data: memoryview) -> tuple[int, int] | None:
    """Return where the final block begins, in bits, and how many bytes it inflates to."""
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
                return (at, size) if _is_evidence(last, history) else None
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
            # Whether up to 19 lengths of 3 bits are those of a complete prefix code.
            lengths = bits >> 4 & (1 << 3 * ((bits & 15) + 4)) - 1
            taken = _SUMS[lengths & 4095] + _SUMS[lengths >> 12 & 4095] + _SUMS[lengths >> 24 & 4095]
            if taken + _SUMS[lengths >> 36 & 4095] + _SUMS[lengths >> 48] == _WHOLE:
                yield at * 8 + shift


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


WINDOW = 32 << 10
"""How far back deflate looks, in bytes."""

# zlib-ng's levels cost about what libdeflate's next higher ones do; its last is 9.
_BLOCK_LEVELS = (0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9)
# zlib-ng's window does not depend on it; fewer symbols to a Huffman table shrink device code by 2 % more than level 9.
_BLOCK_MEMORY = 7
_PIECE = 256 << 10
"""Bytes that are looked at to tell what kind of bytes they are."""
_PART_SAMPLE = 4 << 10
_SAMPLES = 4
_SAMPLED = _SAMPLES * _PART_SAMPLE
_PART_SAMPLED_FROM = 32 << 10
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
    if piece[:_PART_SAMPLE] == _ZEROS[: len(piece[:_PART_SAMPLE])] and bytes(piece) == _ZEROS[: len(piece)]:
        return _Kind.ZEROS
    return _Kind.DENSE if len(piece) >= _PART_SAMPLED_FROM and _is_dense(piece) else _Kind.OTHER


def _is_dense(piece: memoryview) -> bool:
    """Return whether a piece would shrink by less than a twentieth, judged by samples.

    Where one of them alone gains as much, as it does in most code, no other is looked at: to deflate all cost a
    twelfth of what packing the piece does.
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
"""Bytes of content that one piece covers: twice the window that xz looks back over."""

ENCODER_MEMORY = 94 << 20
"""Bytes of memory that one encoder needs at most, in addition to its input and output (xz(1), preset 6)."""

_GROWTH = 4 << 20
_XZ_PRESET = 6
_ZSTD_LEVEL = 1
"""Of 616 MB of development files, one core takes 1.9 s for 122 MB; level 3 takes 4.3 s for 109, level 9 17 s for 92."""


def stream_bound(size: int) -> int:
    """Return how many bytes a content of ``size`` bytes comes to at most, compressed in pieces."""
    # What can't compress grows by far less.
    return size + (size >> 4) + _GROWTH


def compress_piece(content: Content, start: int, stop: int, format_: StreamFormat) -> bytes:
    """Return the bytes from ``start`` to ``stop`` compressed into one complete stream."""
    with content.open(start, stop) as buffers:
        return compress_bytes(buffers, format_)


def compress_bytes(buffers: list[memoryview], format_: StreamFormat) -> bytes:
    """Return the bytes of buffers, one after the other, compressed into one complete stream."""
    if format_ == "xz":
        return _feed(lzma.LZMACompressor(preset=_XZ_PRESET), buffers)
    return _feed(zstd.ZstdCompressor(_ZSTD_LEVEL), buffers)


def _feed(compressor: lzma.LZMACompressor | zstd.ZstdCompressor, buffers: list[memoryview]) -> bytes:
    return b"".join([*(compressor.compress(buffer) for buffer in buffers), compressor.flush()])


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


_PACKING_CODE = ("member_cache.py", "member_compression.py", "packing.py")
"""The modules on which packed bytes depend."""


@cache
def codec_identity() -> bytes:
    """Return what differs wherever packed bytes may: between versions of the codecs, of this code, and processors.

    Two versions of rocwheel whose code for packing is the same have the same one.
    """
    tools = [f"{name} {version}" for name, version in sorted(codec_tools().items())]
    samples = [codec_sample(codec) for codec in QUICK_CODECS]
    code = b"".join(source_hash(Path(__file__).with_name(name)) for name in _PACKING_CODE)
    return hashlib.sha256("\n".join(tools + samples).encode() + code).digest()


@cache
def xz_identity() -> bytes:
    """Return the same for xz, whose library does not tell its version through Python, and whose sample takes longer."""
    return hashlib.sha256(codec_identity() + codec_sample("xz").encode()).digest()


def block_ranges(size: int, block: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the blocks that ``size`` bytes are cut into."""
    return [(start, min(start + block, size)) for start in range(0, size, block)]


def piece_ranges(content: Content, piece: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the pieces of a content, each of ``piece`` bytes at most.

    One that is no larger than a piece stays whole.
    """
    if content.size <= piece or not isinstance(content, SequenceContent):
        return block_ranges(content.size, piece)
    sections = pairwise([0, *content.joints, content.size])
    return [(start + at, start + end) for start, stop in sections for at, end in block_ranges(stop - start, piece)]
