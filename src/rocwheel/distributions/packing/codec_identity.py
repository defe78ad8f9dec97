"""What decides which packed bytes come of the same bytes and level: the codecs and the code that calls them."""

from __future__ import annotations

import hashlib
import lzma
import platform
from functools import cache
from pathlib import Path

import deflate
from zlib_ng import zlib_ng

from rocwheel.foundation.source_hash import source_hash
from rocwheel.foundation.zstd import zstd

__all__ = ["codec_identity", "xz_identity"]


@cache
def codec_identity() -> bytes:
    """Return what differs wherever packed bytes may: between versions of the codecs, of this code, and machines.

    Two versions of rocwheel whose code for packing is the same have the same one.
    """
    texts: list[str] = [deflate.__version__, str(zlib_ng.ZLIBNG_VERSION), zstd.zstd_version, platform.machine()]
    return hashlib.sha256("\n".join(texts).encode() + source_hash(Path(__file__).parent)).digest()


@cache
def xz_identity() -> bytes:
    """Return the same for xz, whose library does not tell its version through Python: what it makes of a few bytes."""
    sample = b"".join(b"%d gfx%x\n" % (number, number * number % 4091) for number in range(4000))
    return hashlib.sha256(codec_identity() + lzma.compress(sample)).digest()
