"""The compression libraries of this process: their versions, and how they pack a sample.

That is the one answer to whether two processes pack the same bytes: for what a cache keeps, for the workers of a
cluster, and for the manifest of a build.
"""

from __future__ import annotations

import hashlib
import lzma
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import deflate
from zlib_ng import zlib_ng

from rocwheel.foundation.compression.zstd import zstd

__all__ = ["QUICK_CODECS", "codec_sample", "codec_samples", "codec_tools", "library_version"]

_LEVELS = {"libdeflate": (1, 6, 9), "zlib-ng": (4, 6), "zstd": (1, 3), "xz": (6,)}
"""Those that packages are packed with, by codec; libdeflate's lowest decides what is worth deflating."""
_MEMORY = 7
"""How much zlib-ng has for symbols, as where it packs parts of members."""
QUICK_CODECS = ("libdeflate", "zlib-ng", "zstd")
"""Those whose samples take a few milliseconds; that of xz takes a tenth of a second."""


@cache
def codec_tools() -> dict[str, str]:
    """Return the versions of the codecs' libraries, and the kind of processor that they run on."""
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
    """Return what each codec makes of a sample, as a hash: some choose their ways by the processor."""
    return {codec: codec_sample(codec) for codec in _LEVELS}


@cache
def codec_sample(codec: str) -> str:
    """Return the hash of what a codec makes of 300 kB that neither repeat nor are random, at the levels in use."""
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
