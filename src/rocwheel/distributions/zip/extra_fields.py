"""The extra fields that headers and entries of ZIP archives have (APPNOTE.TXT 6.3, section 4.5)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNICODE_PATH", "ZIP64", "iter_extra_fields"]

ZIP64: Final = 1
UNICODE_PATH: Final = 0x7075
_HEAD = struct.Struct("<2H")


def iter_extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and data of each field; data that the last one lacks are left out."""
    at = 0
    while at + _HEAD.size <= len(extra):
        kind, length = _HEAD.unpack_from(extra, at)
        at += _HEAD.size
        yield kind, extra[at : at + length]
        at += length
