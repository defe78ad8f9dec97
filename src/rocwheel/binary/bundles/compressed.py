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
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.payload import (
    PAYLOAD_ERRORS,
    Method,
    compress_payload,
    iter_payload,
    iter_shares,
    measure_frame,
    zstd_content_size,
)
from rocwheel.binary.bundles.plain import OffloadBundle, read_offload_bundle
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import COMPRESSED_MAGIC, is_compressed_bundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "RAW_SIZE_LIMIT",
    "CompressedBundle",
    "Method",
    "WrongHashError",
    "compress_bundle",
    "decompress_bundle",
    "header_version",
    "iter_decompressed",
    "measure_entries",
    "read_compressed_bundle",
    "read_compressed_head",
]

RAW_SIZE_LIMIT = 1 << 32
"""The largest raw bundle that is held in memory unless the caller says otherwise, in bytes."""

_COMMON = struct.Struct("<4sHH")
_LAYOUTS = {1: struct.Struct("<I8s"), 2: struct.Struct("<II8s"), 3: struct.Struct("<QQ8s")}
_BLOCK = 1 << 20
_HEAD_BLOCK = 1 << 14
_HEAD_LIMIT = 1 << 20
_DIGEST_SIZE = 8


class WrongHashError(DeviceCodeError):
    """A bundle whose content isn't that which its header has the hash of."""

    def __init__(self, place: Place, stored: bytes, actual: bytes) -> None:
        super().__init__(
            place,
            f"its hash is {stored.hex()}, that of its content {actual.hex()}",
            remedy="The device code may be damaged: get the file anew, or use --force to take it as it is.",
        )


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


def header_version(data: bytes) -> int | None:
    """Return the version of the compressed bundle at the start of ``data``; none when there is none."""
    return int.from_bytes(data[4:6], "little") if is_compressed_bundle(data) else None


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
        raise _bad_payload(place, e) from e
    raise _too_large(place, raw_size)


def _unwrap_raw_size(declared: int, payload: memoryview) -> int:
    try:
        actual = zstd_content_size(payload)
    except PAYLOAD_ERRORS:
        return declared
    return actual if actual is not None and actual % (1 << 32) == declared else declared


def read_compressed_head(data: memoryview, bundle: CompressedBundle, *, place: Place) -> OffloadBundle:
    """Read the header of the plain bundle inside, decompressing no more than that takes.

    ``data`` starts with the compressed bundle. Raises `DeviceCodeError` as `read_offload_bundle` does, and for a
    payload that isn't zlib or zstd data.
    """
    head = bytearray()
    problem: DeviceCodeError | None = None
    for block in _iter_checked(data, bundle, place, block=_HEAD_BLOCK):
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
    after ``raw_size`` bytes of output (a decompression bomb is cut off there). Raises `WrongHashError` once all is
    given: what came before is as the payload has it.
    """
    md5 = hashlib.md5(usedforsecurity=False)
    for block in _iter_checked(data, bundle, place, block=_BLOCK):
        md5.update(block)
        yield block
    if (digest := md5.digest()[:_DIGEST_SIZE]) != bundle.digest:
        raise WrongHashError(place, bundle.digest, digest)


def _iter_checked(data: memoryview, bundle: CompressedBundle, place: Place, *, block: int) -> Iterator[bytes]:
    payload = data[bundle.header_size : bundle.size]
    blocks = iter_payload(payload, bundle.method, block)
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
    except PAYLOAD_ERRORS as e:
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


def _bad_payload(place: Place, error: Exception) -> DeviceCodeError:
    return DeviceCodeError(place, f"its payload can't be decompressed ({error})")


def _too_large(place: Place, raw_size: int) -> DeviceCodeError:
    return DeviceCodeError(place, f"decompresses to more than the {raw_size} bytes that its header declares")


def decompress_bundle(
    data: memoryview, bundle: CompressedBundle, *, place: Place, limit: int = RAW_SIZE_LIMIT
) -> tuple[memoryview, WrongHashError | None]:
    """Return the plain bundle inside and, if the hash in the header isn't that of it, the error to raise or to tell.

    Memory is taken as the payload decompresses, whatever size the header declares.

    Raises `DeviceCodeError` for a raw size above ``limit``, and as `iter_decompressed` does.
    """
    if bundle.raw_size > limit:
        raise DeviceCodeError(
            place, f"holds a bundle of {bundle.raw_size} bytes", expected=f"at most {limit}, the limit set here"
        )
    raw = bytearray()  # grows with what comes: the declared size may be a lie
    wrong_hash: WrongHashError | None = None
    try:
        for block in iter_decompressed(data, bundle, place=place):
            raw += block
    except WrongHashError as e:
        wrong_hash = e
    return memoryview(raw).toreadonly(), wrong_hash


def _digest(buffers: Iterable[memoryview]) -> bytes:
    md5 = hashlib.md5(usedforsecurity=False)
    for buffer in buffers:
        md5.update(buffer)
    return md5.digest()[:_DIGEST_SIZE]


def measure_entries(data: memoryview, bundle: CompressedBundle, plain: OffloadBundle, *, place: Place) -> list[int]:
    """Return how many compressed bytes each entry of ``plain``, the bundle inside, takes.

    Entries of less than a zstd block (128 KiB) share those of their block. An entry that repeats one before it takes
    next to nothing. Raises `DeviceCodeError` for a damaged payload.
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
        raise _bad_payload(place, e) from e
    return [round(size) for size in sizes]


def compress_bundle(raw: Iterable[memoryview], *, version: int, level: int, method: Method = Method.ZSTD) -> bytes:
    """Compress a plain bundle, given as a sequence of buffers, into a CCOB of ``version`` 2 or 3.

    The zstd window spans the bundle, up to 128 MiB, and long-distance matching is on, so that the code of many targets
    that is the same costs almost nothing.
    Raises `ValueError` for version 1, which the runtime can't read, and for 4 GiB or more in version 2.
    """
    buffers = list(raw)
    raw_size = sum(len(buffer) for buffer in buffers)
    if version not in {2, 3} or (version == 2 and raw_size >= 1 << 32):
        msg = f"a bundle of {raw_size} bytes can't be written in version {version}"
        raise ValueError(msg)
    payload = compress_payload(buffers, method, level)
    layout = _LAYOUTS[version]
    total = _COMMON.size + layout.size + len(payload)
    return _COMMON.pack(COMPRESSED_MAGIC, version, method) + layout.pack(total, raw_size, _digest(buffers)) + payload
