"""The debug directory of a DLL or program: where its debug information is, in the file and in memory.

The layout follows "PE Format", section "The .debug Section".
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.bytes import PeError
from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.pe.header import PeHeader
    from rocwheel.binary.pe.sections import Image

__all__ = ["MOST_DEBUG_ENTRIES", "OFFSET_AT", "DebugEntry", "debug_directory_fault", "iter_debug_entries"]

OFFSET_AT: Final = 24
"""Where in an entry the file offset of its debug information stands, as an u32."""
_ENTRY: Final = Struct("<IIHHIIII")
MOST_DEBUG_ENTRIES: Final = 1 << 10
"""Entries that one file has, at most; linkers write fewer than ten."""


class DebugEntry(msgspec.Struct, frozen=True):
    """An entry: its own address, and the size in bytes, address and file offset of the debug information."""

    place: int
    """Address of the entry, relative to the image base, as `address` is."""
    size: int
    address: int
    """0 where the debug information is not loaded."""
    offset: int


def debug_directory_fault(header: PeHeader) -> str:
    """Return what is wrong with the number of entries; empty if nothing is. It completes "the file has ..."."""
    number = _count(header)
    return f"a debug directory of {number} entries" if number > MOST_DEBUG_ENTRIES else ""


def iter_debug_entries(image: Image) -> Iterator[DebugEntry]:
    """Yield the entries of the debug directory; raise `PeError` where it is damaged, or has too many of them."""
    directory = image.header.directory(Directory.DEBUG)
    if fault := debug_directory_fault(image.header):
        raise PeError(image.source.name, fault, expected=f"{MOST_DEBUG_ENTRIES} at most")
    start = directory.address if directory else 0
    for number in range(_count(image.header)):
        place = start + number * _ENTRY.size
        *_, size, address, offset = image.unpack(_ENTRY, place, "an entry of the debug directory")
        yield DebugEntry(place, size, address, offset)


def _count(header: PeHeader) -> int:
    directory = header.directory(Directory.DEBUG)
    return directory.size // _ENTRY.size if directory else 0
