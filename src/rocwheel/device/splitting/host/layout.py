"""The layout of a library whose device code is split off: what leaves it, and where the marker goes.

The marker takes the last page that ``.hip_fatbin`` had in memory, and is loaded with what follows it. The section ends
before that page, and as it is empty it needs no place in the file. So one program header more is enough, of which
`rocwheel.device.trimming.segment_cut` finds one to spare: the table of program headers stays where it is, as long as it
is. Linux tells programs an address of the table that is right on every version, and whatever strips the file or edits
it finds what linkers make.

Where no program header can be spared, or sparing one costs more of the file than it gains, the segment may end with the
section: then both the section and the segment's bytes end behind the marker, which takes the section's first bytes. The
segment keeps its memory. In all other cases the section keeps its bytes, which become zeros, and the marker takes the
last of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.elf.header import SHF_ALLOC, SHT_NOBITS, SHT_PROGBITS, Section, Segment, load_segments
from rocwheel.binary.kpack.markers import MARKER_SECTION
from rocwheel.device.splitting.host.errors import NotSplittableError
from rocwheel.device.trimming.packing import PAGE
from rocwheel.device.trimming.segment_cut import SPARES_OF_LIBRARY, SPARES_OF_PROGRAM, cut_segment

if TYPE_CHECKING:
    from rocwheel.device.trimming.library import FatLibrary

__all__ = ["HostLayout", "lay_out"]

_MARKER_ALIGNMENT = 16


class HostLayout(msgspec.Struct, frozen=True):
    """The host file as it becomes, with file offsets of the old file."""

    segments: tuple[Segment, ...]
    fat: Section
    """The section of device code, without it."""
    marker: Section
    zeros_to: int
    """New file offset up to which zeros stand in the place of the code."""
    marker_room: int
    """How many bytes the marker's place has in the file; zeros follow the marker."""
    changes: tuple[tuple[int, int], ...] = ()
    """How many bytes are put in or, negative, taken out before which offset."""

    @property
    def gain(self) -> int:
        """By how many bytes the file becomes smaller, but for tables."""
        return -sum(size for _, size in self.changes)


def lay_out(library: FatLibrary, size: int, *, is_program: bool) -> HostLayout:
    """Decide where a marker section of ``size`` bytes goes in ``library``, and how the rest moves.

    Raises `NotSplittableError` where there is no room for the marker.
    """
    section = library.section
    start = section.size - size
    if start < 0:
        found = f".hip_fatbin of {section.size} bytes"
        raise NotSplittableError(Place(library.fat.name, section.offset), found, expected=f"{size}, for the marker")
    on_page = (section.address + start) // PAGE * PAGE - section.address
    gain = max(on_page, 0) // library.unit * library.unit
    # Program headers that an edit has moved have to stay as far from the file's start as from that of memory.
    if gain == 0 or (is_program and library.header.segments_offset > library.start):
        return _in_place(library, size, start)
    in_place = _at_end(library, size) or _in_place(library, size, start)
    try:
        parted = _without_code(library, _marker(section, on_page, size), gain, is_program=is_program)
    except NotTrimmableError:
        return in_place
    return max(parted, in_place, key=lambda layout: layout.gain)


def _in_place(library: FatLibrary, size: int, start: int) -> HostLayout:
    section = library.section
    aligned = start - (section.address + start) % _MARKER_ALIGNMENT
    at = aligned if aligned >= 0 else start
    fat = msgspec.structs.replace(section, size=at)
    marker = _marker(section, at, size)
    return HostLayout(library.segments, fat, marker, marker.offset, library.stop - marker.offset)


def _at_end(library: FatLibrary, size: int) -> HostLayout | None:
    """Return the layout of a section with which the bytes of its segment end; none where others follow in it."""
    section, holder = library.section, library.holder
    others = [library.header.segments_offset]
    others += [other.offset for other in library.sections if other.has_bytes and other.size and other != section]
    others += [other.offset for other in library.segments if other.file_size and other != holder]
    if any(library.stop <= offset < holder.end for offset in others):
        return None
    at = _MARKER_ALIGNMENT + -section.address % _MARKER_ALIGNMENT
    gain = (section.size - at - size) // library.unit * library.unit
    if gain <= 0:
        return None
    marker = _marker(section, at, size)
    ended = msgspec.structs.replace(holder, file_size=marker.offset + size - holder.offset)
    segments = tuple(ended if segment == holder else segment for segment in library.segments)
    fat = msgspec.structs.replace(section, size=at)
    return HostLayout(segments, fat, marker, library.stop - gain, size, ((library.stop, -gain),))


def _marker(section: Section, at: int, size: int) -> Section:
    """Return the marker's section, ``at`` bytes into the section of device code."""
    address, offset = section.address + at, section.offset + at
    return Section(MARKER_SECTION, 0, SHT_PROGBITS, SHF_ALLOC, address, offset, size, 0, 0, 1, 0)


def _without_code(library: FatLibrary, marker: Section, gain: int, *, is_program: bool) -> HostLayout:
    section = library.section
    fat = msgspec.structs.replace(section, type=SHT_NOBITS, size=marker.address - section.address)
    sections = [fat if other == section else other for other in library.sections]
    spares = SPARES_OF_PROGRAM if is_program else SPARES_OF_LIBRARY
    tables, holder = (library.segments, [*sections, marker]), library.holder
    # The segment goes on behind the code that leaves: with the marker, if with nothing else.
    cut = cut_segment(tables, holder, (library.start, marker.offset), name=library.fat.name, spares=spares)
    segments = tuple(_with_memory(segment, holder, marker) for segment in cut.segments)
    changes = ((marker.offset, -gain), (cut.padded_at, cut.padding))
    return HostLayout(segments, fat, marker, marker.offset - gain, library.stop - marker.offset, changes)


def _with_memory(segment: Segment, holder: Segment, marker: Section) -> Segment:
    """Return what is left of ``holder`` with memory up to the marker; other program headers as they are."""
    is_left = segment in load_segments([segment]) and segment.address == holder.address
    return msgspec.structs.replace(segment, memory_size=marker.address - holder.address) if is_left else segment
