"""Base relocations: the pointers that the loader corrects where an image is not at the address it was linked for.

The layouts follow "PE Format", section "The .reloc Section": blocks, one for a page of 4096 bytes, each with a header
of u32 address and u32 size, and an u16 for each place: its kind in the upper four bits, its offset in the page below.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.pe.bytes import PeError
from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.pe.sections import Image

__all__ = ["iter_pointers"]

_BLOCK: Final = Struct("<II")
_PLACE: Final = Struct("<H")
_POINTER: Final = Struct("<Q")
_PAGE: Final = 4096
_DIR64: Final = 10
_KIND_SHIFT, _OFFSET = 12, 0xFFF


def iter_pointers(image: Image) -> Iterator[tuple[int, int]]:
    """Yield the file offset of each 64-bit pointer that the loader corrects, and the address that it holds.

    That is relative to the image base. Raises `PeError` for damaged tables, and for pointers without bytes in the file.
    """
    directory = image.header.directory(Directory.RELOCATIONS)
    position, stop = (directory.address, directory.address + directory.size) if directory else (0, 0)
    while position + _BLOCK.size <= stop:
        page, size = image.unpack(_BLOCK, position, "a block of base relocations")
        if not _BLOCK.size <= size <= stop - position:
            found = f"a block of base relocations of {size} bytes at {position:#x}, in a table that ends at {stop:#x}"
            raise PeError(image.source.name, found)
        places = image.read(position + _BLOCK.size, size - _BLOCK.size, "base relocations")
        yield from _block_pointers(image, page, places[: len(places) // _PLACE.size * _PLACE.size])
        position += size


def _block_pointers(image: Image, page: int, places: bytes) -> Iterator[tuple[int, int]]:
    values = (value for (value,) in _PLACE.iter_unpack(places))
    offsets = [value & _OFFSET for value in values if value >> _KIND_SHIFT == _DIR64]
    if not offsets:
        return
    what = "a pointer with a base relocation"
    first, last = min(offsets), max(offsets)
    content = image.read(page + first, last - first + _POINTER.size, what)
    at, _ = image.offset_of(page + first, what)
    for offset in offsets:
        (value,) = _POINTER.unpack_from(content, offset - first)
        yield at + offset - first, value - image.header.image_base
