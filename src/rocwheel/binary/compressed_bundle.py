"""Compressed offload bundles (CCOB), versions 1 to 3, after LLVM's ``OffloadBundle.cpp``.

=======  =======================================================================
version  header, little-endian, followed by one zlib stream or zstd frame
=======  =======================================================================
1        ``CCOB``, u16 1, u16 method, u32 raw size, 8 bytes hash
2        ``CCOB``, u16 2, u16 method, u32 total size, u32 raw size, 8 bytes hash
3        ``CCOB``, u16 3, u16 method, u64 total size, u64 raw size, 8 bytes hash
=======  =======================================================================

The payload is a whole plain bundle. The total size counts the header. The hash is the beginning of the raw bundle's
MD5: no reader enforces it, but AMD's comgr keys its cache by it. Version 1 doesn't tell its total size.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.device_error import DeviceCodeError, Place
from rocwheel.binary.offload_bundle import OffloadBundle, read_offload_bundle
from rocwheel.binary.zstd import zstd

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

__all__ = [
    "COMPRESSED_MAGIC",
    "RAW_SIZE_LIMIT",
    "CompressedBundle",
    "Method",
    "compress_bundle",
    "decompress_bundle",
    "iter_decompressed",
    "read_compressed_bundle",
    "read_compressed_head",
]

COMPRESSED_MAGIC = b"CCOB"
RAW_SIZE_LIMIT = 1 << 32
"""The largest raw bundle that is held in memory unless the caller says otherwise, in bytes."""

_COMMON = struct.Struct("<4sHH")
_LAYOUTS = {1: struct.Struct("<I8s"), 2: struct.Struct("<II8s"), 3: struct.Struct("<QQ8s")}
_BLOCK = 1 << 20
_HEAD_INPUT = 1 << 14
_HEAD_LIMIT = 1 << 20
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER_LIMIT = 18
_WINDOW_LOG_LIMIT = 31
_LDM_HASH_RATE_LOG = 5
"""How densely long-distance matching samples; on fat binaries, of 3 to 5, the best in size and time."""
_DECODER_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG_LIMIT}


class Method(IntEnum):
    """How a payload is compressed: the values of ``llvm::compression::Format``."""

    ZLIB = 0
    ZSTD = 1


class CompressedBundle(msgspec.Struct, frozen=True):
    """The header of a compressed bundle; ``size`` is the total size, ``raw_size`` that of the plain bundle within."""

    version: int
    method: Method
    header_size: int
    size: int
    raw_size: int
    digest: bytes

    @property
    def compressed_size(self) -> int:
        """Size of the compressed payload in bytes."""
        return self.size - self.header_size


def read_compressed_bundle(data: memoryview, *, place: Place) -> CompressedBundle:
    """Read the header at the start of ``data``, which may go on after the bundle.

    The size of a version 1 bundle is found from its payload. The raw size of a version 2 bundle of 4 GiB or more, which
    its field can't hold, is taken from the zstd frame.
    Raises `DeviceCodeError` for unknown versions and methods, truncated headers, and sizes past the end of ``data``.
    """
    version, method = _read_version(data, place)
    layout = _LAYOUTS[version]
    header_size = _COMMON.size + layout.size
    if len(data) < header_size:
        raise DeviceCodeError(place, f"{len(data)} bytes, too few for a header of version {version}")
    fields = layout.unpack_from(data, _COMMON.size)
    raw_size: int = fields[-2]
    size: int = (
        fields[0] if version > 1 else header_size + _measure_payload(data[header_size:], method, raw_size, place)
    )
    if not header_size < size <= len(data):
        raise DeviceCodeError(
            place,
            f"its header declares a total size of {size} bytes",
            expected=f"more than {header_size} and at most {len(data)}, where the data end",
            remedy="The file may be truncated.",
        )
    if version == 2 and method is Method.ZSTD:
        raw_size = _unwrap_raw_size(raw_size, data[header_size:size])
    return CompressedBundle(version, method, header_size, size, raw_size, fields[-1])


def _read_version(data: memoryview, place: Place) -> tuple[int, Method]:
    if len(data) < _COMMON.size:
        raise DeviceCodeError(place, f"{len(data)} bytes, too few for a compressed bundle")
    magic, version, method = _COMMON.unpack_from(data)
    if magic != COMPRESSED_MAGIC:
        raise DeviceCodeError(place, f"starts with {magic!r}", expected=f"{COMPRESSED_MAGIC!r}")
    if version not in _LAYOUTS:
        raise DeviceCodeError(place, f"a compressed bundle of version {version}", expected="version 1, 2 or 3")
    if method not in tuple(Method):
        raise DeviceCodeError(place, f"a payload of compression method {method}", expected="0 (zlib) or 1 (zstd)")
    return version, Method(method)


def _measure_payload(payload: memoryview, method: Method, raw_size: int, place: Place) -> int:
    if method is Method.ZSTD:
        try:
            return zstd.get_frame_size(payload)
        except zstd.ZstdError as e:
            raise _bad_payload(place, e) from e
    stream = _iter_zlib(payload)
    left = raw_size
    try:
        while left >= 0:
            left -= len(next(stream))
    except StopIteration as e:
        return int(e.value)
    except (zlib.error, EOFError) as e:
        raise _bad_payload(place, e) from e
    raise _too_large(place, raw_size)


def _unwrap_raw_size(declared: int, payload: memoryview) -> int:
    try:
        actual = zstd.get_frame_info(payload[:_ZSTD_HEADER_LIMIT]).decompressed_size
    except zstd.ZstdError:
        return declared
    return actual if actual is not None and actual % (1 << 32) == declared else declared


def read_compressed_head(data: memoryview, bundle: CompressedBundle, *, place: Place) -> OffloadBundle:
    """Read the header of the plain bundle inside, decompressing no more than that takes.

    ``data`` starts with the compressed bundle. Raises `DeviceCodeError` as `read_offload_bundle` does, and for a
    payload that isn't zlib or zstd data.
    """
    head = bytearray()
    problem: DeviceCodeError | None = None
    for block in _iter_checked(data, bundle, place, block=_HEAD_INPUT):
        head += block
        try:
            return read_offload_bundle(memoryview(bytes(head)), place=place, available=bundle.raw_size)
        except DeviceCodeError as e:
            problem = e
        if len(head) > _HEAD_LIMIT:
            break
    raise problem or DeviceCodeError(place, "its payload is empty")


def iter_decompressed(data: memoryview, bundle: CompressedBundle, *, place: Place) -> Iterator[bytes]:
    """Give the plain bundle inside in blocks of at most 1 MiB, whatever its size.

    Raises `DeviceCodeError` when the payload is damaged, or doesn't end where the header says: with its input, and
    after ``raw_size`` bytes of output (a decompression bomb is cut off there).
    """
    return _iter_checked(data, bundle, place, block=_BLOCK)


def _iter_checked(data: memoryview, bundle: CompressedBundle, place: Place, *, block: int) -> Iterator[bytes]:
    payload = data[bundle.header_size : bundle.size]
    blocks = _iter_zstd(payload, block) if bundle.method is Method.ZSTD else _iter_zlib(payload, block)
    produced = consumed = 0
    try:
        while True:
            piece = next(blocks)
            produced += len(piece)
            if produced > bundle.raw_size:
                raise _too_large(place, bundle.raw_size)
            yield piece
    except StopIteration as e:
        consumed = int(e.value)
    except (zstd.ZstdError, zlib.error, EOFError) as e:
        raise _bad_payload(place, e) from e
    if produced != bundle.raw_size:
        raise DeviceCodeError(
            place, f"decompresses to {produced} bytes", expected=f"{bundle.raw_size}, as its header declares"
        )
    if consumed != len(payload):
        raise DeviceCodeError(
            place,
            f"its payload ends {len(payload) - consumed} bytes before the declared total size of {bundle.size}",
            remedy="Readers of LLVM 22 and earlier refuse such a bundle.",
        )


def _iter_zstd(payload: memoryview, block: int = _BLOCK) -> Generator[bytes, None, int]:
    """Decompress one frame after the other; the return value tells how much input they took."""
    consumed = 0
    while consumed < len(payload) and (consumed == 0 or bytes(payload[consumed : consumed + 4]) == _ZSTD_MAGIC):
        decoder = zstd.ZstdDecompressor(options=_DECODER_OPTIONS)
        position = consumed
        while not decoder.eof:
            chunk = payload[position : position + _HEAD_INPUT] if decoder.needs_input else b""
            if decoder.needs_input and not chunk:
                msg = "the compressed data end early"
                raise EOFError(msg)
            position += len(chunk)
            if piece := decoder.decompress(chunk, max_length=block):
                yield piece
        consumed = position - len(decoder.unused_data)
    return consumed


def _iter_zlib(payload: memoryview, block: int = _BLOCK) -> Generator[bytes, None, int]:
    """Decompress one stream; the return value tells how much input it took."""
    decoder = zlib.decompressobj()
    position, pending = 0, b""
    while not decoder.eof:
        chunk = pending or bytes(payload[position : position + _HEAD_INPUT])
        position += 0 if pending else len(chunk)
        piece = decoder.decompress(chunk, block)
        pending = decoder.unconsumed_tail
        if not chunk and not piece:
            msg = "the compressed data end early"
            raise EOFError(msg)
        if piece:
            yield piece
    return position - len(decoder.unused_data)


def _bad_payload(place: Place, error: Exception) -> DeviceCodeError:
    return DeviceCodeError(place, f"its payload can't be decompressed ({error})")


def _too_large(place: Place, raw_size: int) -> DeviceCodeError:
    return DeviceCodeError(place, f"decompresses to more than the {raw_size} bytes that its header declares")


def decompress_bundle(
    data: memoryview, bundle: CompressedBundle, *, place: Place, limit: int = RAW_SIZE_LIMIT
) -> tuple[memoryview, str | None]:
    """Return the plain bundle inside and, if the hash in the header isn't that of it, a warning.

    Raises `DeviceCodeError` for a raw size above ``limit``, and as `iter_decompressed` does.
    """
    if bundle.raw_size > limit:
        raise DeviceCodeError(
            place, f"holds a bundle of {bundle.raw_size} bytes", expected=f"at most {limit}, the limit set here"
        )
    raw = bytearray(bundle.raw_size)
    position = 0
    for block in iter_decompressed(data, bundle, place=place):
        raw[position : position + len(block)] = block
        position += len(block)
    view = memoryview(raw).toreadonly()
    digest = _digest([view])
    if digest == bundle.digest:
        return view, None
    return view, f"{place}: its hash is {bundle.digest.hex()}, that of its content {digest.hex()}"


def _digest(buffers: Iterable[memoryview]) -> bytes:
    md5 = hashlib.md5(usedforsecurity=False)
    for buffer in buffers:
        md5.update(buffer)
    return md5.digest()[:8]


def compress_bundle(raw: Iterable[memoryview], *, version: int, level: int, method: Method = Method.ZSTD) -> bytes:
    """Compress a plain bundle, given as a sequence of buffers, into a CCOB of ``version`` 2 or 3.

    The zstd window spans the whole bundle and long-distance matching is on, so that the code of many targets that is
    the same costs almost nothing. Readers decompress in one call, for which any window is fine.
    Raises `ValueError` for version 1, which the runtime can't read, and for 4 GiB or more in version 2.
    """
    buffers = list(raw)
    raw_size = sum(len(buffer) for buffer in buffers)
    if version not in {2, 3} or (version == 2 and raw_size >= 1 << 32):
        msg = f"a bundle of {raw_size} bytes can't be written in version {version}"
        raise ValueError(msg)
    payload = _deflate(buffers, level) if method is Method.ZLIB else _compress_zstd(buffers, raw_size, level)
    layout = _LAYOUTS[version]
    total = _COMMON.size + layout.size + len(payload)
    return _COMMON.pack(COMPRESSED_MAGIC, version, method) + layout.pack(total, raw_size, _digest(buffers)) + payload


def _deflate(buffers: list[memoryview], level: int) -> bytes:
    encoder = zlib.compressobj(min(level, 9))
    return b"".join([*(encoder.compress(buffer) for buffer in buffers), encoder.flush()])


def _compress_zstd(buffers: list[memoryview], raw_size: int, level: int) -> bytes:
    parameter = zstd.CompressionParameter
    options: dict[int, int] = {
        parameter.compression_level: level,
        parameter.enable_long_distance_matching: 1,
        parameter.ldm_hash_rate_log: _LDM_HASH_RATE_LOG,
        parameter.window_log: min(max(raw_size.bit_length(), 10), _WINDOW_LOG_LIMIT - 1),
    }
    encoder = zstd.ZstdCompressor(options=options)
    encoder.set_pledged_input_size(raw_size)
    return b"".join([*(encoder.compress(buffer) for buffer in buffers), encoder.flush()])
