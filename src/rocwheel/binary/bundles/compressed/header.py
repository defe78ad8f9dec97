"""The header of compressed offload bundles (CCOB), versions 1 to 3, after LLVM's ``OffloadBundle.cpp``.

=======  =======================================================================
version  header, little-endian, followed by one zlib stream or zstd frame
=======  =======================================================================
1        ``CCOB``, u16 1, u16 method, u32 raw size, 8 bytes hash
2        ``CCOB``, u16 2, u16 method, u32 total size, u32 raw size, 8 bytes hash
3        ``CCOB``, u16 3, u16 method, u64 total size, u64 raw size, 8 bytes hash
=======  =======================================================================

The payload is a whole plain bundle. The total size counts the header. The hash is the beginning of the raw bundle's
MD5: no reader enforces it, but AMD's comgr keys its cache by it. Version 1 doesn't state its total size.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed.payload import (
    PAYLOAD_ERRORS,
    Method,
    iter_payload,
    zstd_content_size,
)
from rocwheel.binary.bundles.compressed.zstd_frame import measure_frame
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import COMPRESSED_MAGIC, is_compressed_bundle
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = [
    "CompressedBundle",
    "Method",
    "bad_payload",
    "header_size",
    "header_version",
    "read_compressed_bundle",
    "too_large",
]

_COMMON = struct.Struct("<4sHH")
_LAYOUTS = {1: struct.Struct("<I8s"), 2: struct.Struct("<II8s"), 3: struct.Struct("<QQ8s")}
_BLOCK = 1 << 20


class CompressedBundle(msgspec.Struct, frozen=True):
    """The header of a compressed bundle; ``size`` is the total size, ``raw_size`` that of the plain bundle within."""

    version: int
    method: Method
    header_size: int
    size: int
    raw_size: int
    digest: bytes

    def pack(self) -> bytes:
        """Return the bytes of this header, of version 2 or 3."""
        sizes = _LAYOUTS[self.version].pack(self.size, self.raw_size, self.digest)
        return _COMMON.pack(COMPRESSED_MAGIC, self.version, self.method) + sizes


def header_size(version: int) -> int:
    """Return the size of a header of ``version`` 1, 2 or 3 in bytes."""
    return _COMMON.size + _LAYOUTS[version].size


def header_version(data: bytes) -> int | None:
    """Return the version of the compressed bundle at the start of ``data``; none when there is none."""
    return int.from_bytes(data[4:6], "little") if is_compressed_bundle(data) else None


def read_compressed_bundle(data: Data, *, place: Place) -> CompressedBundle:
    """Read the header at the start of ``data``, which may go on after the bundle.

    The size of a version 1 bundle is found from its payload. The raw size of a version 2 bundle of 4 GiB or more, which
    its field can't hold, is taken from the zstd frame.
    Raises `DeviceCodeError` for unknown versions and methods, truncated headers, and sizes past the end of ``data``.
    """
    version, method = _read_version(data, place)
    start = header_size(version)
    if len(data) < start:
        raise DeviceCodeError(place, f"{count(len(data), 'byte')}, too few for a header of version {version}")
    fields = _LAYOUTS[version].unpack(bytes(data[_COMMON.size : start]))
    raw_size: int = fields[-2]
    size: int = fields[0] if version > 1 else start + _measure_payload(data[start:], method, raw_size, place)
    if not start < size <= len(data):
        raise DeviceCodeError(
            place,
            f"its header declares a total size of {count(size, 'byte')}",
            expected=f"more than {start} and at most {len(data)}, where the data end",
            remedy="The file may be truncated.",
        )
    if version == 2 and method is Method.ZSTD:
        raw_size = _unwrap_raw_size(raw_size, data[start:size])
    return CompressedBundle(version, method, start, size, raw_size, fields[-1])


def _read_version(data: Data, place: Place) -> tuple[int, Method]:
    if len(data) < _COMMON.size:
        raise DeviceCodeError(place, f"{count(len(data), 'byte')}, too few for a compressed bundle")
    magic, version, method = _COMMON.unpack(bytes(data[: _COMMON.size]))
    if magic != COMPRESSED_MAGIC:
        raise DeviceCodeError(place, f"starts with {magic!r}", expected=f"{COMPRESSED_MAGIC!r}")
    if version not in _LAYOUTS:
        raise DeviceCodeError(place, f"a compressed bundle of version {version}", expected="version 1, 2 or 3")
    if method not in tuple(Method):
        raise DeviceCodeError(place, f"a payload of compression method {method}", expected="0 (zlib) or 1 (zstd)")
    return version, Method(method)


def _measure_payload(payload: Data, method: Method, raw_size: int, place: Place) -> int:
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


def _unwrap_raw_size(declared: int, payload: Data) -> int:
    try:
        actual = zstd_content_size(payload)
    except PAYLOAD_ERRORS:
        return declared
    return actual if actual is not None and actual % (1 << 32) == declared else declared


def bad_payload(place: Place, error: Exception) -> DeviceCodeError:
    """Return what to raise for a payload that is not zlib or zstd data, or damaged."""
    return DeviceCodeError(place, f"its payload can't be decompressed ({error})")


def too_large(place: Place, raw_size: int) -> DeviceCodeError:
    """Return what to raise for a payload that gives more than the ``raw_size`` that its header declares."""
    return DeviceCodeError(place, f"decompresses to more than the {count(raw_size, 'byte')} that its header declares")
