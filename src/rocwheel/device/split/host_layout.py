"""Rewrites the layout, tables, and wrappers of host files after parts have moved.

The marker takes up the last page of ``.hip_fatbin`` in memory, and is loaded with the data after it. The section ends
before that page and is empty, so it needs no space in the file. Therefore, one more program header is enough, and
`rocwheel.device.trim_space` finds a spare header. The table of program headers keeps its position and length. As a
result, every version of Linux passes the table's correct address to programs. Tools that strip or edit the file find
the same layout as in a linker's output.

If there is no spare program header, or using one costs more file space than it saves, the segment may end with the
section. In that case, both the section and the segment's bytes end after the marker, which takes up the first bytes of
the section. The segment's range in memory doesn't change. In all other cases, the section keeps its bytes, which become
zeros, and the marker takes up the last of these bytes.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import OffsetMoves
from rocwheel.binary.bundles.wrappers import pack_wrapper_head
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, NotTrimmableError
from rocwheel.binary.elf.header import (
    E_PHOFF,
    PT_PHDR,
    SECTION_LAYOUT,
    SHF_ALLOC,
    SHF_TLS,
    SHT_NOBITS,
    SHT_NULL,
    SHT_PROGBITS,
    ElfBytes,
    ElfSection,
    Header,
    Segment,
    load_segments,
)
from rocwheel.binary.elf.patch import SectionTable, order_sections, patch_of_writes, require_plain_numbers
from rocwheel.binary.elf.relocations import INFO_AT, pack_relative
from rocwheel.binary.kpack.markers import MARKER_SECTION
from rocwheel.core.patch import FilePatch, Replacement, fill_gaps
from rocwheel.device.trim_space import PAGE, SPARES_OF_LIBRARY, SPARES_OF_PROGRAM, cut_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary, Wrapper
    from rocwheel.binary.elf.header import ElfBytes
    from rocwheel.device.trim import FatLibrary


class NotSplittableError(DeviceCodeError):
    """An error for a valid file whose device code can't be split off."""

    @classmethod
    def because(cls, error: NotTrimmableError) -> NotSplittableError:
        """Return the error for a file that can't be split because it can't be trimmed."""
        return cls(error.place, error.found, expected=error.expected)

    def __init__(self, place: CodePlace, found: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(
            place,
            found,
            expected=expected,
            remedy=remedy or "Leave the device code in the file, and include the file in the host.",
        )


class NotJoinableError(DeviceCodeError):
    """An error for a valid file whose device code can't be put back."""


class NoRoomForCodeError(NotJoinableError):
    """An error for a file with less room than the device code needs; sizes are in bytes."""

    def __init__(self, place: CodePlace, size: int, room: int) -> None:
        self.size, self.room = size, room
        found = f"{size} bytes of device code, but only {room} fit"
        super().__init__(place, found, expected="code that fits", remedy="Join fewer targets.")


_ADDRESS = Struct("<Q")
_NUMBER = Struct("<I")
_POINTER_AT, _INDEX_AT = 8, 16


class WrapperContent(msgspec.Struct, frozen=True):
    """The new content of a wrapper: its bundle's address, or its marker's address with the index in archives."""

    target: int
    index: int = 0
    is_kpack: bool = False


def require_known_machine(name: str, machine: int) -> None:
    """Raise `NotSplittableError` if the relocations for a file's ``machine`` are unknown."""
    if pack_relative(machine, 0) is None:
        found = f"a file for machine {machine}"
        raise NotSplittableError(CodePlace(name), found, expected="x86-64 (62), AArch64 (183), or 64-bit POWER (21)")


def write_wrapper(source: ElfBytes, machine: int, wrapper: Wrapper, content: WrapperContent) -> Iterator[Replacement]:
    """Yield the writes that store ``content`` in ``wrapper`` and at the location of its pointer.

    A relocation to a symbol becomes a relocation to an address.
    """
    pointer, in_place = wrapper.pointer, wrapper.offset + _POINTER_AT
    yield Replacement.of(wrapper.offset, pack_wrapper_head(is_kpack=content.is_kpack))
    yield Replacement.of(wrapper.offset + _INDEX_AT, _NUMBER.pack(content.index))
    if pointer.named_at is not None and (relative := pack_relative(machine, content.target)) is not None:
        yield Replacement.of(pointer.named_at + INFO_AT, relative)
    elif pointer.stored_at is not None and pointer.stored_at != in_place:
        yield Replacement.of(pointer.stored_at, _ADDRESS.pack(content.target))
    # Linkers may leave zeros in a pointer only if a relocation has the address.
    if pointer.stored_at == in_place or source.unpack(_ADDRESS, in_place, "a pointer") != (0,):
        yield Replacement.of(in_place, _ADDRESS.pack(content.target))


def write_image_wrappers(fat: FatBinary, contents: Iterable[WrapperContent]) -> tuple[Replacement, ...]:
    """Return the writes that give the wrappers of a DLL or program their ``contents``, in order.

    A pointer is stored in place. Targets are absolute addresses for an image at its preferred address.
    """
    return tuple(
        Replacement.of(wrapper.offset + at, data)
        for wrapper, content in zip(fat.wrappers, contents, strict=True)
        for at, data in (
            (0, pack_wrapper_head(is_kpack=content.is_kpack)),
            (_POINTER_AT, _ADDRESS.pack(content.target)),
            (_INDEX_AT, _NUMBER.pack(content.index)),
        )
    )


def follow_headers(segments: tuple[Segment, ...], at: int, inserted: int, *, name: str) -> tuple[Segment, ...]:
    """Return ``segments`` after ``inserted`` bytes are inserted at the file offset ``at``.

    The result has the old file offsets. In programs, AMD's tool moves the program header table to an address that
    equals its file offset. Older kernels, such as 4.18, pass that address to programs as the table's address. This
    function keeps the address and offset equal. Raises `NotJoinableError` if the table's segment can't get a different
    address.
    """
    headers = next((segment for segment in segments if segment.type == PT_PHDR), None)
    if not inserted or headers is None or headers.offset < at or headers.address != headers.offset:
        return segments
    loaded = load_segments(segments)
    holder = max(loaded, key=lambda segment: segment.address)
    if (holder.offset, holder.address, holder.file_size) != (headers.offset, headers.address, headers.file_size):
        found = f"program headers at {headers.offset:#x} that aren't in a separate segment at the end"
        remedy = "Use the original file from before the split."
        raise NotJoinableError(
            CodePlace(name, headers.offset), found, expected="program headers that can move", remedy=remedy
        )
    return tuple(
        msgspec.structs.replace(s, address=s.address + inserted, physical_address=s.physical_address + inserted)
        if s in {headers, holder}
        else s
        for s in segments
    )


_MARKER_ALIGNMENT = 16


class HostLayout(msgspec.Struct, frozen=True):
    """The new layout of the host file, with the old file's offsets."""

    segments: tuple[Segment, ...]
    fat: ElfSection
    """The device code section without its code."""
    marker: ElfSection
    zeros_to: int
    """The end of the zeros that replace the code, as a new file offset."""
    marker_room: int
    """The size of the space for the marker in the file. Zeros follow the marker."""
    changes: tuple[tuple[int, int], ...] = ()
    """Pairs of an offset and the number of bytes inserted there (or removed, if negative)."""

    @property
    def gain(self) -> int:
        """The number of bytes by which the file shrinks, not counting tables."""
        return -sum(size for _, size in self.changes)


def lay_out(library: FatLibrary, size: int, *, is_program: bool) -> HostLayout:
    """Choose the position of a marker section of ``size`` bytes in ``library``, and how the other data moves.

    Raises `NotSplittableError` if there is no room for the marker.
    """
    section = library.section
    start = section.size - size
    if start < 0:
        found = f"a .hip_fatbin section of {section.size} bytes"
        raise NotSplittableError(CodePlace(library.fat.name, section.offset), found, expected=f"{size} for the marker")
    on_page = (section.address + start) // PAGE * PAGE - section.address
    gain = max(on_page, 0) // library.unit * library.unit
    # Program headers that an edit moved must keep the same distance from the start of the file and of memory.
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
    """Return the layout for a section at the end of its segment's bytes, or `None` if other data follows."""
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


def _marker(section: ElfSection, at: int, size: int) -> ElfSection:
    """Return the marker's section, at offset ``at`` in the device code section."""
    address, offset = section.address + at, section.offset + at
    return ElfSection(MARKER_SECTION, 0, SHT_PROGBITS, SHF_ALLOC, address, offset, size, 0, 0, 1, 0)


def _without_code(library: FatLibrary, marker: ElfSection, gain: int, *, is_program: bool) -> HostLayout:
    section = library.section
    fat = msgspec.structs.replace(section, type=SHT_NOBITS, size=marker.address - section.address)
    sections = [fat if other == section else other for other in library.sections]
    spares = SPARES_OF_PROGRAM if is_program else SPARES_OF_LIBRARY
    tables, holder = (library.segments, [*sections, marker]), library.holder
    # The segment continues after the removed code, at least with the marker.
    cut = cut_segment(tables, holder, (library.start, marker.offset), name=library.fat.name, spares=spares)
    # The remaining first part of the segment has memory up to the marker.
    segments = tuple(
        msgspec.structs.replace(segment, memory_size=marker.address - holder.address)
        if segment.address == holder.address and segment in load_segments([segment])
        else segment
        for segment in cut.segments
    )
    changes = ((marker.offset, -gain), (cut.padded_at, cut.padding))
    return HostLayout(segments, fat, marker, marker.offset - gain, library.stop - marker.offset, changes)


_OFFSET: Final = Struct("<Q")
_TABLE_ALIGNMENT, _LARGEST_ALIGNMENT = 8, 4096


class ElfTables(msgspec.Struct, frozen=True):
    """The current tables of a file."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[ElfSection, ...]


class Rewrite(msgspec.Struct, frozen=True):
    """The changes to a file, with the old file's offsets."""

    segments: tuple[Segment, ...]
    sections: tuple[tuple[ElfSection, ElfSection | None], ...]
    """Each changed section and its replacement, or `None` for a removed section."""
    added: tuple[ElfSection, ...]
    changes: tuple[tuple[int, int], ...]
    """Pairs of an offset and the number of bytes inserted there (or removed, if negative)."""
    content: tuple[Replacement, ...]
    """The content that replaces inserted or removed bytes, at new offsets."""
    writes: tuple[Replacement, ...]
    holder: Segment | None = None
    """The segment that keeps its offset, because it includes the bytes inserted at its start."""


class _Tail(msgspec.Struct, frozen=True):
    """The new tables of sections and section names, and their positions.

    A table grows in place if no loaded data follows it; other tables move to the end of the file.
    """

    moves: OffsetMoves
    table: SectionTable
    names: bytes
    names_at: int
    table_at: int
    size: int


def rewrite_file(source: ElfBytes, tables: ElfTables, rewrite: Rewrite) -> FilePatch:
    """Return the patch that applies ``rewrite`` to the file ``source``.

    Raises `ElfError` for tables that overlap, and for sections that can't be renumbered.
    """
    require_plain_numbers(source, tables.sections)
    header, old = tables.header, tables.sections
    names_section = old[header.section_names_index]
    names = source.read(names_section.offset, names_section.size, "the section names")
    added, names = _name_sections(rewrite.added, names)
    gone = [before for before, after in rewrite.sections if after is None]
    table = order_sections(old, header.section_names_index, added=added, gone=gone)
    loaded_end = max(segment.end for segment in load_segments(tables.segments))
    moves = OffsetMoves.of([*rewrite.changes, *_growths(tables, len(names), len(table.sections), loaded_end)])
    size = moves.offset(source.size)
    names_at, table_at = moves.offset(names_section.offset), moves.offset(header.sections_offset)
    # Tables before loaded data move to the end of the file.
    if names_section.offset < loaded_end and len(names) > names_section.size:
        names_at, size = size, size + len(names)
    if header.sections_offset < loaded_end:
        table_at = _aligned(size, _TABLE_ALIGNMENT)
        size = table_at + len(table.sections) * SECTION_LAYOUT.size
    tail = _Tail(moves, table, names, names_at, table_at, size)
    edits = patch_of_writes(_iter_edits(source, tables, rewrite, tail), tail.size, name=source.name)
    moved = tuple(tail.moves.iter_moved(source.size))
    filled = fill_gaps(moved, moved[0].start if moved else 0)
    pieces = sorted([*rewrite.content, *filled], key=lambda piece: piece.start)
    return FilePatch(tail.moves.offset(source.size), tuple(pieces)).then(edits)


def _growths(tables: ElfTables, names_size: int, count: int, loaded_end: int) -> Iterator[tuple[int, int]]:
    """Yield the growth of each table that grows in place because no loaded data follows it."""
    header, names = tables.header, tables.sections[tables.header.section_names_index]
    if names.offset >= loaded_end:
        # The data after the tables stays aligned, to the extent that is useful.
        behind = (s.alignment for s in tables.sections if s.type != SHT_NULL and s.offset > names.offset)
        alignment = min(max([_TABLE_ALIGNMENT, *behind]), _LARGEST_ALIGNMENT)
        yield names.offset + names.size, _aligned(names_size - names.size, alignment)
    if header.sections_offset >= loaded_end:
        stop = header.sections_offset + header.section_count * SECTION_LAYOUT.size
        yield stop, (count - len(tables.sections)) * SECTION_LAYOUT.size


def _name_sections(added: Sequence[ElfSection], names: bytes) -> tuple[list[ElfSection], bytes]:
    """Return new sections with the offsets of their names, and the section name table with the new names."""
    named = []
    for section in added:
        name = section.name.encode() + b"\0"
        at = names.find(b"\0" + name) + 1
        if not at:
            names, at = names + name, len(names)
        named.append(msgspec.structs.replace(section, name_offset=at))
    return named, names


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _iter_edits(source: ElfBytes, tables: ElfTables, rewrite: Rewrite, tail: _Tail) -> Iterator[Replacement]:
    """Yield all writes to the moved data, at new offsets."""
    for write in (*rewrite.writes, *tail.table.symbols(source, tables.sections)):
        start = tail.moves.offset(write.start)
        yield msgspec.structs.replace(write, start=start, stop=start + write.stop - write.start)
    segments_at = tail.moves.offset(tables.header.segments_offset)
    segments = (
        s if s == rewrite.holder else msgspec.structs.replace(s, offset=_moved_place(s.offset, source, tail))
        for s in rewrite.segments
    )
    yield Replacement.of(E_PHOFF, _OFFSET.pack(segments_at))
    yield Replacement.of(segments_at, b"".join(segment.pack(source.name) for segment in segments))
    yield Replacement.of(tail.names_at, tail.names)
    names = tables.sections[tables.header.section_names_index]
    changed = dict(rewrite.sections)
    sections = []
    for section in tail.table.sections:
        new = changed.get(section) or section
        if section == names:
            sections.append(msgspec.structs.replace(new, offset=tail.names_at, size=len(tail.names)))
        # A loaded section without bytes in the file stays with the data before it.
        elif section in changed or (
            section.type == SHT_NOBITS and section.flags & SHF_ALLOC and not section.flags & SHF_TLS
        ):
            sections.append(msgspec.structs.replace(new, offset=tail.moves.end(min(new.offset, source.size))))
        else:
            sections.append(msgspec.structs.replace(new, offset=_moved_place(new.offset, source, tail)))
    yield Replacement.of(tail.table_at, msgspec.structs.replace(tail.table, sections=tuple(sections)).pack())
    yield from tail.table.header(tail.table_at)


def _moved_place(offset: int, source: ElfBytes, tail: _Tail) -> int:
    """Return the new value of a file offset in a header; an offset outside the file doesn't change."""
    return tail.moves.offset(offset) if offset <= source.size else offset
