"""The compression libraries in this process, and limits for decompressed sizes.

Only this module decides whether two processes produce the same packed bytes. The cache, cluster workers, and build
manifests use it.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import IO, Final, cast

import deflate
from zlib_ng import zlib_ng

if sys.version_info >= (3, 14):
    from compression import zstd as zstd  # noqa: PLC0414
else:
    from backports import zstd as zstd  # noqa: PLC0414


_LEVELS = {"libdeflate": (1, 6, 9), "zlib-ng": (4, 6), "zstd": (1, 3), "xz": (6,)}
"""The compression levels for packages, keyed by codec. libdeflate's lowest level tests whether data is compressible."""
_MEMORY = 7
"""zlib-ng's memory level for compressing parts of members."""
WHEEL_LEVEL: Final = 6
"""The default libdeflate level for wheel members."""
DEVICE_CODE_LEVEL: Final = 3
"""The default zstd level for device code in compressed bundles and kpack archives.

The choice is based on CPU seconds on one core for librocsparse's code, 1.3 GB. Level 1 takes 4.3 s for 142 MB, level 2
takes 4.8 s for 132 MB, level 3 takes 7 s for 125 MB, level 6 takes 12 s for 120 MB, and level 9 takes 22 s for 113 MB.
These numbers are estimates based on a ninth of the bundles. Up to level 3, each second saves at least 2 MB. From level
3 to level 9, each second saves less than 1 MB.
"""
QUICK_CODECS = ("libdeflate", "zlib-ng", "zstd")
"""The codecs whose samples take a few milliseconds. The xz sample takes a tenth of a second."""


@cache
def codec_tools() -> dict[str, str]:
    """Return the versions of the codec libraries, and the type of this machine's processor."""
    versions = {name: library_version(name) for name in ("deflate", "zlib-ng")}
    versions["libzlib-ng"] = str(zlib_ng.ZLIBNG_VERSION)
    return versions | {"libzstd": zstd.zstd_version, "machine": platform.machine()}


def library_version(name: str) -> str:
    """Return the version of an installed distribution."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def codec_samples() -> dict[str, str]:
    """Return a hash of each codec's output for a sample. Some codecs choose their code path based on the processor."""
    return {codec: codec_sample(codec) for codec in _LEVELS}


@cache
def codec_sample(codec: str) -> str:
    """Return the hash of a codec's output for 300 kB of data at the levels in use.

    The data is neither repetitive nor random.
    """
    sample = b"".join(b"%x" % (number * number * 2654435761) for number in range(20_000))
    packed = b"".join(_pack(codec, level, sample) for level in _LEVELS[codec])
    return hashlib.sha256(packed).hexdigest()[:16]


def _pack(codec: str, level: int, sample: bytes) -> bytes:
    if codec == "libdeflate":
        return bytes(deflate.deflate_compress(sample, level))
    if codec == "zlib-ng":
        packer = zlib_ng.compressobj(level, zlib_ng.DEFLATED, -15, _MEMORY)
        return packer.compress(sample) + packer.flush()
    return zstd.compress(sample, level) if codec == "zstd" else lzma.compress(sample, preset=level)


MOST_EXPANDED: Final = 200
"""The maximum expansion ratio if more than 1 GiB is unpacked. Libraries have a ratio of about ten.

For zeros, deflate reaches 229 at its fastest level and 1,032 at best. xz and Zstandard reach several thousand.
"""

BOUND: Final = f"at most 1 GiB, or {MOST_EXPANDED} times its packed size"
"""The limit from `most_unpacked`, for messages."""

CAUTION: Final = "Don't unpack this file unless you trust its source."
"""The remedy for a larger expansion. Another copy of the file wouldn't help."""

_TRUSTED = 1 << 30


class ExpansionError(ValueError):
    """Packed bytes expand beyond `most_unpacked`. They aren't damaged."""


def most_unpacked(packed_size: int) -> int:
    """Return the maximum unpacked size of ``packed_size`` bytes: 1 GiB, or `MOST_EXPANDED` times as many."""
    return max(_TRUSTED, packed_size * MOST_EXPANDED)


class BoundedStream:
    """A forward-only stream that raises `ExpansionError` after ``limit`` bytes."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        """Read from ``stream``. Closing this object doesn't close ``stream``."""
        self._stream, self._left, self._limit = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all remaining bytes. Raises `ExpansionError` beyond the limit."""
        most = self._left + 1
        data = self._stream.read(min(size, most) if size >= 0 else most)
        self._left -= len(data)
        if self._left < 0:
            msg = f"unpacks to more than {self._limit} bytes"
            raise ExpansionError(msg)
        return data


XZ_MEMORY = 128 << 20
"""A decoder's memory limit in bytes, which is twice the requirement of ``xz -9``. A stream can request 4 GiB."""

_CHUNK = 1 << 16


def open_xz(file: IO[bytes]) -> IO[bytes]:
    """Return the decompressed contents of ``file``, which contains one or more xz streams, as a forward-only file.

    Reading raises `EOFError` if the contents are truncated. It raises `lzma.LZMAError` for other damage and for a
    stream that needs more than `XZ_MEMORY`.
    """
    return cast("IO[bytes]", io.BufferedReader(_XzStream(file), _CHUNK))


class _XzStream(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._decoder: lzma.LZMADecompressor | None = _new_decoder()
        self._waiting = b""

    def readable(self) -> bool:
        """Return `True`, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer with the next bytes. Returns 0 at the end."""
        view = memoryview(cast("bytearray", buffer))
        data = b""
        while not data and self._decoder is not None:
            data = self._decode(self._decoder, len(view))
        view[: len(data)] = data
        return len(data)

    def _decode(self, decoder: lzma.LZMADecompressor, size: int) -> bytes:
        if decoder.needs_input and not self._waiting:
            self._waiting = self._file.read(_CHUNK)
            if not self._waiting:
                msg = "its stream is truncated"
                raise EOFError(msg)
        data = decoder.decompress(self._waiting, size)
        self._waiting = b""
        if decoder.eof:
            self._next_stream(decoder.unused_data)
        return data

    def _next_stream(self, rest: bytes) -> None:
        # After a stream, there may be zeros in multiples of four bytes (xz file format 1.2, section 2.2).
        while rest := (rest or self._file.read(_CHUNK)):
            if rest := rest.lstrip(b"\0"):
                break
        self._waiting = rest
        self._decoder = _new_decoder() if rest else None


def _new_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY)
