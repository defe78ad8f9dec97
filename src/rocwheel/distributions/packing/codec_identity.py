"""The identity of the codecs and the code that calls them: the same ones pack the same bytes alike."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from rocwheel.core.compression import QUICK_CODECS, codec_sample, codec_tools
from rocwheel.core.python import source_hash

__all__ = ["codec_identity", "xz_identity"]


@cache
def codec_identity() -> bytes:
    """Return what differs wherever packed bytes may: between versions of the codecs, of this code, and processors.

    Two versions of rocwheel whose code for packing is the same have the same one.
    """
    tools = [f"{name} {version}" for name, version in sorted(codec_tools().items())]
    samples = [codec_sample(codec) for codec in QUICK_CODECS]
    return hashlib.sha256("\n".join(tools + samples).encode() + source_hash(Path(__file__).parent)).digest()


@cache
def xz_identity() -> bytes:
    """Return the same for xz, whose library does not tell its version through Python, and whose sample takes longer."""
    return hashlib.sha256(codec_identity() + codec_sample("xz").encode()).digest()
