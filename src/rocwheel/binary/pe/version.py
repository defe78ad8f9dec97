"""The version that the resources of a DLL or program name (``VS_FIXEDFILEINFO``).

The layouts follow "PE Format", section "The .rsrc Section", and Microsoft's "VS_VERSIONINFO structure".
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from rocwheel.binary.pe.sections import Image

__all__ = ["FileVersion", "read_version"]

_TABLE: Final = Struct("<IIHHHH")
_ENTRY: Final = Struct("<II")
_DATA: Final = Struct("<IIII")
_FIXED: Final = Struct("<IIIIII")
_SIGNATURE = 0xFEEF04BD
_RT_VERSION = 16
_IS_TABLE = _HAS_NAME = 1 << 31
_LEVELS = 3
"""Of the tree of resources: kind, name, language."""
_LONGEST = 64 << 10
_TO_FIXED = 40
"""Where the fixed part stands in a version resource: behind three lengths and the key ``VS_VERSION_INFO``, aligned."""


class FileVersion(msgspec.Struct, frozen=True):
    """Versions of four numbers each: of the file, and of the product that it is a part of."""

    file: tuple[int, int, int, int]
    product: tuple[int, int, int, int]


def read_version(image: Image) -> FileVersion | None:
    """Return the version in the resources; none where there is none. Raises `PeError` where they are damaged."""
    directory = image.header.directory(Directory.RESOURCES)
    if directory is None:
        return None
    at, wanted = directory.address, _RT_VERSION
    for _ in range(_LEVELS):
        found = _find(image, at, wanted)
        if found is None:
            return None
        if not found & _IS_TABLE:
            return _read_data(image, directory.address + found)
        at, wanted = directory.address + (found & ~_IS_TABLE), -1
    return None


def _find(image: Image, at: int, wanted: int) -> int | None:
    """Return the place of the entry of an id, or with -1 of the first entry."""
    *_, named, with_ids = image.unpack(_TABLE, at, "a table of resources")
    table = image.read(at + _TABLE.size, (named + with_ids) * _ENTRY.size, "a table of resources")
    return next((place for key, place in _ENTRY.iter_unpack(table) if wanted in {-1, _id_of(key)}), None)


def _id_of(key: int) -> int | None:
    """Return the id of an entry, which Windows takes from the lower half of the field; none of one with a name."""
    return None if key & _HAS_NAME else key & 0xFFFF


def _read_data(image: Image, at: int) -> FileVersion | None:
    address, size, *_ = image.unpack(_DATA, at, "the place of the version resource")
    if not _TO_FIXED + _FIXED.size <= size <= _LONGEST:
        return None
    data = image.read(address, size, "the version resource")
    signature, _, *versions = _FIXED.unpack_from(data, _TO_FIXED)
    if signature != _SIGNATURE:
        return None
    file_high, file_low, product_high, product_low = versions
    return FileVersion(_numbers(file_high, file_low), _numbers(product_high, product_low))


def _numbers(high: int, low: int) -> tuple[int, int, int, int]:
    return high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF
