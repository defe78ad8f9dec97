"""Reads and writes compressed offload bundles (CCOB), versions 1 to 3, following LLVM's ``OffloadBundler.cpp``.

=======  =======================================================================
version  header, little-endian, followed by one zlib stream or zstd frame
=======  =======================================================================
1        ``CCOB``, u16 1, u16 method, u32 raw size, 8 bytes hash
2        ``CCOB``, u16 2, u16 method, u32 total size, u32 raw size, 8 bytes hash
3        ``CCOB``, u16 3, u16 method, u64 total size, u64 raw size, 8 bytes hash
=======  =======================================================================

The payload is a complete plain bundle. The total size includes the header. The hash is the start of the MD5 of the raw
bundle. No reader verifies the hash, but AMD's comgr uses it as a cache key. Version 1 doesn't record the total size.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from contextlib import suppress
from enum import IntEnum
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import OffloadBundle, read_offload_bundle
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError
from rocwheel.binary.kind import COMPRESSED_MAGIC, is_compressed_bundle
from rocwheel.core.compression import zstd
from rocwheel.core.messages import count
from rocwheel.core.reading import Data, iter_pieces, load

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data


_MAGIC = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_SKIPPABLE_HEADER = 8
_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES = (0, 2, 4, 8)
_SINGLE_SEGMENT, _CHECKSUM = 1 << 5, 1 << 2
_BLOCK_HEADER = 3
_RLE, _RESERVED = 1, 3


def measure_frame(payload: Data) -> int:
    """Return the size of the zstd frame at the start of ``payload``; raise `zstd.ZstdError` if there is no frame.

    This function skips the contents of the blocks, because the frame and the data after it might be gigabytes long.
    """
    magic = _integer(payload, 0, 4)
    if magic & _SKIPPABLE_MASK == _SKIPPABLE:
        return _inside(payload, _SKIPPABLE_HEADER + _integer(payload, 4, 4))
    if magic != _MAGIC:
        msg = "the payload doesn't begin with a zstd frame"
        raise zstd.ZstdError(msg)
    descriptor = _integer(payload, 4, 1)
    position, is_last = 5 + _header_fields_size(descriptor), False
    while not is_last:
        header = _integer(payload, position, _BLOCK_HEADER)
        is_last = bool(header & 1)
        position = _inside(payload, position + _BLOCK_HEADER + _content_size(header))
    return _inside(payload, position + (4 if descriptor & _CHECKSUM else 0))


def _header_fields_size(descriptor: int) -> int:
    """Return the size of the fields between the frame header's descriptor and the first block."""
    is_single = bool(descriptor & _SINGLE_SEGMENT)
    content_size = _CONTENT_SIZE_SIZES[descriptor >> 6] or int(is_single)
    return int(not is_single) + _DICTIONARY_ID_SIZES[descriptor & 3] + content_size


def _content_size(header: int) -> int:
    kind, size = header >> 1 & 3, header >> 3
    if kind == _RESERVED:
        msg = "a zstd block has the reserved type"
        raise zstd.ZstdError(msg)
    return 1 if kind == _RLE else size


def _integer(payload: Data, start: int, size: int) -> int:
    return int.from_bytes(bytes(payload[start : _inside(payload, start + size)]), "little")


def _inside(payload: Data, stop: int) -> int:
    if stop > len(payload):
        msg = "the zstd frame ends early"
        raise zstd.ZstdError(msg)
    return stop


PAYLOAD_ERRORS = (zstd.ZstdError, zlib.error, EOFError)
"""The errors raised when a damaged payload is decompressed."""

_INPUT = 1 << 14
_SHARE_INPUT = 1 << 9
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER_LIMIT = 18
_READER_WINDOW_LOG = 31
_WRITER_WINDOW_LOG = 27
"""The base-2 logarithm of the largest window, 128 MiB, that streaming decoders accept with default settings."""
_LDM_HASH_RATE_LOG = 7
"""The sampling density of long-distance matching.

On fat binaries, a lower density increases the size, and a higher density increases the time.
"""
_DECODER_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _READER_WINDOW_LOG}


class Method(IntEnum):
    """The compression method of a payload, with the values of ``llvm::compression::Format``."""

    ZLIB = 0
    ZSTD = 1


def iter_payload(payload: Data, method: Method, block: int) -> Generator[bytes, None, int]:
    """Decompress in blocks of at most ``block`` bytes; the return value is the number of input bytes consumed.

    Raises one of `PAYLOAD_ERRORS` for damaged or truncated data.
    """
    return _iter_zstd(payload, block) if method is Method.ZSTD else _iter_zlib(payload, block)


def _iter_zstd(payload: Data, block: int) -> Generator[bytes, None, int]:
    """Decompress all frames, one after another; the return value is the number of input bytes consumed."""
    consumed = 0
    while consumed < len(payload) and (consumed == 0 or not _is_end(payload[consumed:], Method.ZSTD)):
        decoder = zstd.ZstdDecompressor(options=_DECODER_OPTIONS)
        position = consumed
        while not decoder.eof:
            chunk = bytes(payload[position : position + _INPUT]) if decoder.needs_input else b""
            if decoder.needs_input and not chunk:
                msg = "the compressed data ends early"
                raise EOFError(msg)
            position += len(chunk)
            if piece := decoder.decompress(chunk, max_length=block):
                yield piece
        consumed = position - len(decoder.unused_data)
    return consumed


def _iter_zlib(payload: Data, block: int) -> Generator[bytes, None, int]:
    """Decompress one stream; the return value is the number of input bytes consumed."""
    decoder = zlib.decompressobj()
    position, pending = 0, b""
    while not decoder.eof:
        chunk = pending or bytes(payload[position : position + _INPUT])
        position += 0 if pending else len(chunk)
        piece = decoder.decompress(chunk, block)
        pending = decoder.unconsumed_tail
        if not chunk and not piece:
            msg = "the compressed data ends early"
            raise EOFError(msg)
        if piece:
            yield piece
    return position - len(decoder.unused_data)


def iter_shares(payload: Data, method: Method) -> Iterator[tuple[int, int]]:
    """Yield the raw size and the compressed size of each small piece of the output, in order.

    Raises one of `PAYLOAD_ERRORS` for damaged data.
    """
    decoder = _decoder(method)
    position = taken = 0
    while position < len(payload) and not (decoder.eof and _is_end(payload[position:], method)):
        decoder = _decoder(method) if decoder.eof else decoder
        chunk = bytes(payload[position : position + _SHARE_INPUT])
        produced = len(decoder.decompress(chunk))
        used = len(chunk) - len(decoder.unused_data)
        position += used
        taken += used
        if produced:
            yield produced, taken
            taken = 0


def _decoder(method: Method) -> zstd.ZstdDecompressor | zlib._Decompress:
    return zstd.ZstdDecompressor(options=_DECODER_OPTIONS) if method is Method.ZSTD else zlib.decompressobj()


def _is_end(rest: Data, method: Method) -> bool:
    """Return whether the payload ends where ``rest`` begins, which is immediately after a frame or stream."""
    return method is Method.ZLIB or bytes(rest[: len(_ZSTD_MAGIC)]) != _ZSTD_MAGIC


def compress_payload(buffers: Sequence[Data], method: Method, level: int) -> Iterator[bytes]:
    """Compress the buffers, in order, into one stream or frame, and yield it in pieces.

    Encoders may copy bytes unchanged, and some readers search only for the magic number to find the next bundle.
    Therefore, if the buffers contain the magic number of a compressed bundle, this function ends a block in the middle
    of that number.
    """
    pieces = _cut_within_magic(piece for buffer in buffers for piece in iter_pieces(buffer))
    if method is Method.ZLIB:
        deflater = zlib.compressobj(min(level, 9))
        for piece, is_cut in pieces:
            yield deflater.compress(piece) + (deflater.flush(zlib.Z_SYNC_FLUSH) if is_cut else b"")
        yield deflater.flush()
        return
    encoder = _zstd_encoder(buffers, level)
    for piece, is_cut in pieces:
        yield encoder.compress(piece, mode=encoder.FLUSH_BLOCK if is_cut else encoder.CONTINUE)
    yield encoder.flush()


def _cut_within_magic(pieces: Iterable[memoryview]) -> Iterator[tuple[memoryview, bool]]:
    """Yield the pieces, cut in the middle of each magic number of a compressed bundle, and whether a cut follows."""
    before = b""
    for piece in pieces:
        both = before + bytes(piece)
        start, found = len(before), both.find(COMPRESSED_MAGIC)
        while found >= 0:
            cut = max(found + len(COMPRESSED_MAGIC) // 2, start)
            yield memoryview(both)[start:cut], True
            start, found = cut, both.find(COMPRESSED_MAGIC, found + 1)
        yield memoryview(both)[start:], False
        before = both[1 - len(COMPRESSED_MAGIC) :]


def _zstd_encoder(buffers: Sequence[Data], level: int) -> zstd.ZstdCompressor:
    raw_size = sum(map(len, buffers))
    parameter = zstd.CompressionParameter
    options: dict[int, int] = {
        parameter.compression_level: level,
        parameter.enable_long_distance_matching: 1,
        parameter.ldm_hash_rate_log: _LDM_HASH_RATE_LOG,
        parameter.window_log: min(max(raw_size.bit_length(), 10), _WRITER_WINDOW_LOG),
    }
    encoder: zstd.ZstdCompressor = zstd.ZstdCompressor(options=options)
    encoder.set_pledged_input_size(raw_size)
    return encoder


_COMMON = struct.Struct("<4sHH")
_LAYOUTS = {1: struct.Struct("<I8s"), 2: struct.Struct("<II8s"), 3: struct.Struct("<QQ8s")}
VERSION_2_LIMIT = 1 << 32
"""The limit in bytes for both sizes in a version 2 header: the fields have 32 bits, so the sizes must be smaller."""
_BLOCK = 1 << 20


class CompressedBundle(msgspec.Struct, frozen=True):
    """The header of a compressed bundle.

    ``size`` is the total size, and ``raw_size`` is the size of the plain bundle inside.
    """

    version: int
    method: Method
    header_size: int
    size: int
    raw_size: int
    digest: bytes

    def pack(self) -> bytes:
        """Return the bytes of this header, which has version 2 or 3."""
        sizes = _LAYOUTS[self.version].pack(self.size, self.raw_size, self.digest)
        return _COMMON.pack(COMPRESSED_MAGIC, self.version, self.method) + sizes


def header_size(version: int) -> int:
    """Return the size in bytes of a version 1, 2, or 3 header."""
    return _COMMON.size + _LAYOUTS[version].size


def header_version(data: bytes) -> int | None:
    """Return the version of the compressed bundle at the start of ``data``, or `None` if there is no such bundle."""
    return int.from_bytes(data[4:6], "little") if is_compressed_bundle(data) else None


def read_compressed_bundle(data: Data, *, place: CodePlace) -> CompressedBundle:
    """Read the header at the start of ``data``, which may continue after the bundle.

    A version 1 header doesn't record the total size, so the size comes from the payload. In a version 2 header, the raw
    size of a bundle of 4 GiB or more doesn't fit, so the raw size is determined from the zstd frame. Raises
    `DeviceCodeError` for unknown versions and methods, truncated headers, and sizes past the end of ``data``.
    """
    version, method = _read_version(data, place)
    start = header_size(version)
    if len(data) < start:
        raise DeviceCodeError(place, f"{count(len(data), 'byte')}, too few for a version {version} header")
    fields = _LAYOUTS[version].unpack(bytes(data[_COMMON.size : start]))
    raw_size: int = fields[-2]
    size: int = fields[0] if version > 1 else start + _measure_payload(data[start:], method, raw_size, place)
    if not start < size <= len(data):
        raise DeviceCodeError(
            place,
            f"its header declares a total size of {count(size, 'byte')}",
            expected=f"more than {start} and at most {len(data)}, where the data ends",
            remedy="The file may be truncated.",
        )
    if version == 2 and method is Method.ZSTD:
        actual: int | None = None
        with suppress(*PAYLOAD_ERRORS):
            actual = zstd.get_frame_info(load(data[start:size][:_ZSTD_HEADER_LIMIT])).decompressed_size
        raw_size = actual if actual is not None and actual % VERSION_2_LIMIT == raw_size else raw_size
    return CompressedBundle(version, method, start, size, raw_size, fields[-1])


def _read_version(data: Data, place: CodePlace) -> tuple[int, Method]:
    if len(data) < _COMMON.size:
        raise DeviceCodeError(place, f"{count(len(data), 'byte')}, too few for a compressed bundle")
    magic, version, method = _COMMON.unpack(bytes(data[: _COMMON.size]))
    if magic != COMPRESSED_MAGIC:
        raise DeviceCodeError(place, f"starts with {magic!r}", expected=f"{COMPRESSED_MAGIC!r}")
    if version not in _LAYOUTS:
        raise DeviceCodeError(place, f"a compressed bundle of version {version}", expected="version 1, 2 or 3")
    if method not in tuple(Method):
        raise DeviceCodeError(place, f"a payload with compression method {method}", expected="0 (zlib) or 1 (zstd)")
    return version, Method(method)


def _measure_payload(payload: Data, method: Method, raw_size: int, place: CodePlace) -> int:
    try:
        if method is Method.ZSTD:
            return measure_frame(payload)
        stream = iter_payload(payload, method, _BLOCK)
        left = raw_size
        while left >= 0:
            left -= len(next(stream))
    except StopIteration as e:
        return int(e.value)
    except PAYLOAD_ERRORS as e:
        raise bad_payload(place, e) from e
    raise too_large(place, raw_size)


def bad_payload(place: CodePlace, error: Exception) -> DeviceCodeError:
    """Return the error for a payload that is damaged or isn't zlib or zstd data."""
    return DeviceCodeError(place, f"its payload can't be decompressed ({error})")


def too_large(place: CodePlace, raw_size: int) -> DeviceCodeError:
    """Return the error for a payload that decompresses to more than the ``raw_size`` in its header."""
    return DeviceCodeError(place, f"decompresses to more than the {count(raw_size, 'byte')} that its header declares")


HIGHEST_LEVEL = 22
"""The highest zstd level for bundles; the highest level for archives is lower."""

RAW_SIZE_LIMIT = 1 << 32
"""The default limit on the size in bytes of a raw bundle that is kept in memory."""

_HEAD_BLOCK = 1 << 14
_HEAD_LIMIT = 1 << 20
_DIGEST_SIZE = 8


class WrongHashError(DeviceCodeError):
    """A bundle whose content doesn't match the hash in its header."""

    def __init__(self, place: CodePlace, stored: bytes, actual: bytes) -> None:
        super().__init__(
            place,
            f"its header has the hash {stored.hex()}, but its content has {actual.hex()}",
            remedy="The device code may be damaged. Get the file again, or use --force to accept the bundle anyway.",
        )


def read_compressed_head(data: Data, bundle: CompressedBundle, *, place: CodePlace) -> OffloadBundle:
    """Read the header of the plain bundle inside a compressed one, decompressing no more than necessary.

    ``data`` starts with the compressed bundle. Raises the same errors as `read_offload_bundle`, and `DeviceCodeError`
    for a payload that isn't zlib or zstd data.
    """
    head = bytearray()
    problem: DeviceCodeError | None = None
    tried = 0
    for block in _iter_checked(data, bundle, place, block=_HEAD_BLOCK):
        head += block
        if len(head) >= min(2 * tried, bundle.raw_size):  # reads each byte about twice
            tried = len(head)
            try:
                return read_offload_bundle(memoryview(bytes(head)), place=place, available=bundle.raw_size)
            except DeviceCodeError as e:
                problem = e
        if len(head) > _HEAD_LIMIT:
            break
    raise problem or DeviceCodeError(place, "the payload is empty")


def iter_decompressed(data: Data, bundle: CompressedBundle, *, place: CodePlace) -> Iterator[bytes]:
    """Yield the plain bundle inside a compressed one, regardless of its size, in blocks of at most 1 MiB.

    Raises `DeviceCodeError` if the payload is damaged or doesn't end where the header indicates. The payload must end
    at the end of its input and after ``raw_size`` bytes of output, which stops decompression bombs. Raises
    `WrongHashError` after the last block, so all blocks are yielded first.
    """
    md5 = hashlib.md5(usedforsecurity=False)
    for block in _iter_checked(data, bundle, place, block=_BLOCK):
        md5.update(block)
        yield block
    if (digest := md5.digest()[:_DIGEST_SIZE]) != bundle.digest:
        raise WrongHashError(place, bundle.digest, digest)


def _iter_checked(data: Data, bundle: CompressedBundle, place: CodePlace, *, block: int) -> Iterator[bytes]:
    payload = data[bundle.header_size : bundle.size]
    blocks = iter_payload(payload, bundle.method, block)
    produced = consumed = 0
    try:
        while True:
            piece = next(blocks)
            produced += len(piece)
            if produced > bundle.raw_size:
                raise too_large(place, bundle.raw_size)
            yield piece
    except StopIteration as e:
        consumed = int(e.value)
    except PAYLOAD_ERRORS as e:
        raise bad_payload(place, e) from e
    if produced != bundle.raw_size:
        raise DeviceCodeError(
            place, f"decompresses to {count(produced, 'byte')}", expected=f"{bundle.raw_size}, as its header declares"
        )
    if left := len(payload) - consumed:
        raise DeviceCodeError(
            place,
            f"its payload ends {count(left, 'byte')} short of the declared total size of {bundle.size}",
            remedy="LLVM 22 and earlier reject such a bundle.",
        )


def decompress_bundle(
    data: Data, bundle: CompressedBundle, *, place: CodePlace, limit: int = RAW_SIZE_LIMIT
) -> tuple[Data, WrongHashError | None]:
    """Return the plain bundle inside a compressed one, and the error to raise or report if its hash is wrong.

    Memory use grows with the decompressed data, regardless of the size that the header declares. Raises the same errors
    as `iter_decompressed`, and `DeviceCodeError` for a raw size above ``limit``.
    """
    require_raw_size(bundle, limit, place=place)
    raw = bytearray()  # grows with the output, because the declared size may be wrong
    wrong_hash: WrongHashError | None = None
    try:
        for block in iter_decompressed(data, bundle, place=place):
            raw += block
    except WrongHashError as e:
        wrong_hash = e
    return memoryview(raw).toreadonly(), wrong_hash


def require_raw_size(bundle: CompressedBundle, limit: int, *, place: CodePlace) -> None:
    """Raise `DeviceCodeError` for a bundle that decompresses to more than ``limit`` bytes."""
    if bundle.raw_size > limit:
        raise DeviceCodeError(
            place,
            f"contains a bundle of {count(bundle.raw_size, 'byte')}",
            expected=f"at most {limit}, the current limit",
            remedy="Set a higher limit if you trust the file.",
        )


def _digest(buffers: Iterable[Data]) -> bytes:
    md5 = hashlib.md5(usedforsecurity=False)
    for buffer in buffers:
        for piece in iter_pieces(buffer):
            md5.update(piece)
    return md5.digest()[:_DIGEST_SIZE]


def measure_entries(data: Data, bundle: CompressedBundle, plain: OffloadBundle, *, place: CodePlace) -> list[int]:
    """Return how many compressed bytes each entry of ``plain``, the decompressed bundle, takes up.

    Entries that are smaller than a zstd block (128 KiB) share their block's bytes. An entry that repeats an earlier
    entry takes almost no space. Raises `DeviceCodeError` for a damaged payload.
    """
    sizes = [0.0] * len(plain.entries)
    begin = 0
    try:
        for produced, taken in iter_shares(data[bundle.header_size : bundle.size], bundle.method):
            end = begin + produced
            for number, entry in enumerate(plain.entries):
                overlap = min(entry.stop, end) - max(entry.offset, begin)
                sizes[number] += taken * max(overlap, 0) / produced
            begin = end
    except PAYLOAD_ERRORS as e:
        raise bad_payload(place, e) from e
    return [round(size) for size in sizes]


def compress_bundle(raw: Iterable[Data], *, version: int, level: int, method: Method = Method.ZSTD) -> bytes:
    """Return the bytes that `write_compressed_bundle` writes.

    If the bytes contain the magic number a second time, try a nearby level.
    """
    buffers, written = list(raw), [b""]
    for tried in (level, *(other for other in (level + 1, level - 1, level + 2) if 1 <= other <= HIGHEST_LEVEL)):
        file = io.BytesIO()
        write_compressed_bundle(file, buffers, version=version, level=tried, method=method)
        written.append(file.getvalue())
        if find_inner_magic(written[-1]) is None:
            return written[-1]
    return written[1]


def find_inner_magic(bundle: bytes | Data) -> int | None:
    """Return the offset of a second magic number inside a compressed bundle, or `None` if there is no second one.

    Some readers find the next bundle by its magic number instead of by the end of this bundle. Such readers mistake the
    offset for the start of another bundle.
    """
    before, start = b"", 0
    for piece in iter_pieces(memoryview(bundle) if isinstance(bundle, bytes) else bundle):
        both = before + bytes(piece)
        found = both.find(COMPRESSED_MAGIC, 0 if start else 1)
        if found >= 0:
            return start - len(before) + found
        start += len(piece)
        before = both[1 - len(COMPRESSED_MAGIC) :]
    return None


def write_compressed_bundle(
    file: IO[bytes], raw: Iterable[Data], *, version: int, level: int, method: Method = Method.ZSTD
) -> None:
    """Write a plain bundle, given as a sequence of buffers, as a version 2 or 3 CCOB at the position of ``file``.

    The zstd window spans the bundle, up to 128 MiB, and long-distance matching is on. So code that is identical for
    many targets costs almost nothing. Memory use is limited to the window and a few megabytes of input and output.
    Raises `ValueError`, before writing anything, if the bundle has 4 GiB or more and the version is 2. To choose the
    version, call `rocwheel.binary.bundles.storage.choose_version`.
    """
    buffers = list(raw)
    raw_size = sum(len(buffer) for buffer in buffers)
    if version == 2 and raw_size >= VERSION_2_LIMIT:
        msg = f"a bundle of {count(raw_size, 'byte')} can't be written in version 2"
        raise ValueError(msg)
    start, size = file.tell(), header_size(version)
    file.seek(start + size)
    file.writelines(compress_payload(buffers, method, level))
    stop = file.tell()
    file.seek(start)
    file.write(CompressedBundle(version, method, size, stop - start, raw_size, _digest(buffers)).pack())
    file.seek(stop)
