"""Room for moved tables: at the end of the last segment, else in one new segment (gABI, "Program Header")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.header import PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, SEGMENT_LAYOUT, Segment, load_segments
from rocwheel.binary.runpath.reach import find_relocation_reach

if TYPE_CHECKING:
    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.runpath.image import Image

__all__ = ["Position", "Room", "find_growing_segment", "grow_segment", "make_room"]

_SMALLEST_PAGE, _LARGEST_PAGE = 1 << 12, 1 << 16
_TABLE_ALIGNMENT = 16
_MOST_PADDING_OF_PROGRAM = 1 << 30
_MOST_PADDING_OF_LIBRARY = 1 << 18
_LARGEST_GAP = 1 << 26
_MOST_SEGMENTS = 0xFFFE
_ADDRESS_LIMIT = 1 << 63


class Position(msgspec.Struct, frozen=True):
    """A position in the file and in memory."""

    offset: int
    address: int

    def after(self, size: int) -> Position:
        """Return the position ``size`` bytes further."""
        return Position(self.offset + size, self.address + size)


class Room(msgspec.Struct, frozen=True):
    """Where tables may be put, and the program headers that load them from there."""

    place: Position
    """The first free byte."""
    segments: tuple[Segment, ...]
    segments_offset: int
    """File offset of the program headers."""


def find_growing_segment(source: ElfBytes, image: Image) -> Segment | None:
    """Return the segment that ends both the file and the memory image, and so can grow, if there is one.

    The segment of an earlier edit is one, so that a second edit adds none. One with code isn't taken.
    """
    last = max(load_segments(image.segments), key=lambda segment: segment.memory_end)
    ends_file = last.end == source.size and last.file_size == last.memory_size
    return last if ends_file and not last.flags & PF_X else None


def make_room(source: ElfBytes, image: Image, size: int, *, writable: bool) -> Room:
    """Make room for ``size`` bytes of tables: in the growing segment if it will do, else in a new one."""
    last = find_growing_segment(source, image)
    if last is not None and (last.flags & PF_W or not writable):
        padding = -source.size % _TABLE_ALIGNMENT
        place = Position(last.end, last.address + last.file_size).after(padding)
        return Room(place, grow_segment(image.segments, last, padding + size), image.header.segments_offset)
    return _add_segment(source, image, size, PF_R | PF_W if writable else PF_R)


def grow_segment(segments: tuple[Segment, ...], last: Segment, size: int) -> tuple[Segment, ...]:
    """Return the segments with one of them ``size`` bytes longer."""
    grown = msgspec.structs.replace(last, file_size=last.file_size + size, memory_size=last.memory_size + size)
    return tuple(grown if segment is last else segment for segment in segments)


def _add_segment(source: ElfBytes, image: Image, size: int, flags: int) -> Room:
    """Add a segment that begins with the program headers, for which their old place has no more room."""
    count = len(image.segments) + 1
    if count > _MOST_SEGMENTS:
        raise ElfError(source.name, f"{count - 1} program headers", expected=f"fewer than {_MOST_SEGMENTS}")
    table_size = _aligned(count * SEGMENT_LAYOUT.size, _TABLE_ALIGNMENT)
    page = _page_size(image)
    start = _choose_place(source, image, page)
    if start.address + table_size + size > _ADDRESS_LIMIT:
        raise ElfError(source.name, f"no room in memory behind {start.address:#x} for one more segment")
    whole = table_size + size
    added = Segment(PT_LOAD, flags, start.offset, start.address, start.address, whole, whole, page)
    return Room(start.after(table_size), _inserted(image.segments, added, start), start.offset)


def _inserted(segments: tuple[Segment, ...], added: Segment, table: Position) -> tuple[Segment, ...]:
    """Put the new segment behind the last loaded one, as they must ascend, and lead ``PT_PHDR`` to the moved table."""
    size = (len(segments) + 1) * SEGMENT_LAYOUT.size
    moved = [
        segment.at(table.offset, table.address, size) if segment.type == PT_PHDR else segment for segment in segments
    ]
    position = max(index for index, segment in enumerate(segments) if segment.type == PT_LOAD) + 1
    return (*moved[:position], added, *moved[position:])


def _choose_place(source: ElfBytes, image: Image, page: int) -> Position:
    """Return the place of the new segment, and of the program headers at its start, on a page boundary.

    On pages of its own in the file too: the dynamic loader takes the first segment of whose pages ``e_phoff`` is on
    one, though the rest of that page may be bss there.

    Linux before 5.18 says to a program that its program headers are at ``e_phoff`` from where its first segment is
    loaded, and the dynamic loader and others compute the same of themselves. That holds only when the new segment
    stands as far from the first in memory as in the file; as memory is usually the longer of the two, zeros in
    between make up for it. A library that needs a lot of them (for a large bss) goes without: whoever loads it looks
    for the segment that holds ``e_phoff``.
    """
    first = min(load_segments(image.segments), key=lambda segment: segment.address)
    bias = first.address - first.offset
    free_address = _aligned(_find_free_address(source, image), page)
    free_offset = _aligned(source.size, page)
    offset = max(free_offset, free_address - bias)
    most_padding = _MOST_PADDING_OF_PROGRAM if image.starts_as_program else _MOST_PADDING_OF_LIBRARY
    if bias % page == 0 and offset - free_offset <= most_padding:
        return Position(offset, offset + bias)
    if image.starts_as_program:
        raise ElfError(
            source.name,
            f"a program whose memory ends {offset - free_offset:#x} bytes behind its file",
            expected=f"at most {most_padding:#x} bytes and segments on page boundaries",
            remedy="Link it with the run path that it needs.",
        )
    return Position(free_offset, free_address)


def _find_free_address(source: ElfBytes, image: Image) -> int:
    end = max(segment.memory_end for segment in load_segments(image.segments))
    reach = find_relocation_reach(source, image)
    return reach + 1 if end <= reach <= end + _LARGEST_GAP else end


def _page_size(image: Image) -> int:
    """Return the largest page that the file was linked for, as far as machines have such pages."""
    alignment = max(segment.alignment for segment in load_segments(image.segments))
    page = _SMALLEST_PAGE
    while page < min(alignment, _LARGEST_PAGE):
        page *= 2
    return page


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
