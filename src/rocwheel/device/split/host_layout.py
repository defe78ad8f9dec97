"""Writes host files anew whose parts have moved: their layout, tables and wrappers.

The marker takes the last page that ``.hip_fatbin`` had in memory, and is loaded with what follows it. The section ends
before that page, and as it is empty it needs no place in the file. So one program header more is enough, of which
`rocwheel.device.trim_space` finds one to spare: the table of program headers stays where it is, as long as it
is. Linux tells programs an address of the table that is right on every version, and whatever strips the file or edits
it finds what linkers make.

Where no program header can be spared, or sparing one costs more of the file than it gains, the segment may end with the
section: then both the section and the segment's bytes end behind the marker, which takes the section's first bytes. The
segment keeps its memory. In all other cases the section keeps its bytes, which become zeros, and the marker takes the
last of them.
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
    """A file that is sound, but whose device code can't leave it."""

    @classmethod
    def because(cls, error: NotTrimmableError) -> NotSplittableError:
        """Return the error for a file that can't be trimmed either."""
        return cls(error.place, error.found, expected=error.expected)

    def __init__(self, place: CodePlace, found: str, *, expected: str = "", remedy: str = "") -> None:
        super().__init__(
            place, found, expected=expected, remedy=remedy or "Leave its device code in it, and list it with the host."
        )


class NotJoinableError(DeviceCodeError):
    """A file that is sound, but that can't take device code back."""


class NoRoomForCodeError(NotJoinableError):
    """A file with less room for device code than there is, in bytes."""

    def __init__(self, place: CodePlace, size: int, room: int) -> None:
        self.size, self.room = size, room
        found = f"{size} bytes of device code, but only {room} fit"
        super().__init__(place, found, expected="code that fits", remedy="Join fewer targets.")


_ADDRESS = Struct("<Q")
_NUMBER = Struct("<I")
_POINTER_AT, _INDEX_AT = 8, 16


class WrapperContent(msgspec.Struct, frozen=True):
    """What a wrapper is to say: the address of its bundle, or that of its marker and the index in archives."""

    target: int
    index: int = 0
    is_kpack: bool = False


def require_known_machine(name: str, machine: int) -> None:
    """Raise `NotSplittableError` for the ``machine`` of a file whose relocations are not known."""
    if pack_relative(machine, 0) is None:
        found = f"a file for machine {machine}"
        raise NotSplittableError(CodePlace(name), found, expected="x86-64 (62), AArch64 (183) or 64-bit POWER (21)")


def write_wrapper(source: ElfBytes, machine: int, wrapper: Wrapper, content: WrapperContent) -> Iterator[Replacement]:
    """Yield what gives ``wrapper`` its ``content``, at its own place and where its pointer is decided.

    A relocation that names a symbol becomes one by an address.
    """
    pointer, in_place = wrapper.pointer, wrapper.offset + _POINTER_AT
    yield Replacement.of(wrapper.offset, pack_wrapper_head(is_kpack=content.is_kpack))
    yield Replacement.of(wrapper.offset + _INDEX_AT, _NUMBER.pack(content.index))
    if pointer.named_at is not None and (relative := pack_relative(machine, content.target)) is not None:
        yield Replacement.of(pointer.named_at + INFO_AT, relative)
    elif pointer.stored_at is not None and pointer.stored_at != in_place:
        yield Replacement.of(pointer.stored_at, _ADDRESS.pack(content.target))
    # Linkers may leave zeros where a relocation has the address, but not where there is none.
    if pointer.stored_at == in_place or source.unpack(_ADDRESS, in_place, "a pointer") != (0,):
        yield Replacement.of(in_place, _ADDRESS.pack(content.target))


def write_image_wrappers(fat: FatBinary, contents: Iterable[WrapperContent]) -> tuple[Replacement, ...]:
    """Return what gives the wrappers of a DLL or program their ``contents``, in their order.

    A pointer stands in its place; targets count from zero in memory, as the linker meant the image to be placed.
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
    """Return ``segments`` as they are once ``inserted`` bytes come in before what was at the file offset ``at``.

    File offsets stay the old ones. In programs, AMD's tool moves the table to an address that is its file offset: older
    kernels, such as 4.18, tell programs that it is there. It stays so, with the segment that loads it.
    Raises `NotJoinableError` where that segment can't be given another address.
    """
    headers = next((segment for segment in segments if segment.type == PT_PHDR), None)
    if not inserted or headers is None or headers.offset < at or headers.address != headers.offset:
        return segments
    loaded = load_segments(segments)
    holder = max(loaded, key=lambda segment: segment.address)
    if (holder.offset, holder.address, holder.file_size) != (headers.offset, headers.address, headers.file_size):
        found = f"program headers at {headers.offset:#x} that are not loaded by a last segment of their own"
        remedy = "Join the file that was there before it was split."
        raise NotJoinableError(
            CodePlace(name, headers.offset), found, expected="them where they can move", remedy=remedy
        )
    return tuple(
        msgspec.structs.replace(s, address=s.address + inserted, physical_address=s.physical_address + inserted)
        if s in {headers, holder}
        else s
        for s in segments
    )


_MARKER_ALIGNMENT = 16


class HostLayout(msgspec.Struct, frozen=True):
    """The host file as it becomes, with file offsets of the old file."""

    segments: tuple[Segment, ...]
    fat: ElfSection
    """The section of device code, without it."""
    marker: ElfSection
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
        raise NotSplittableError(CodePlace(library.fat.name, section.offset), found, expected=f"{size}, for the marker")
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


def _marker(section: ElfSection, at: int, size: int) -> ElfSection:
    """Return the marker's section, ``at`` bytes into the section of device code."""
    address, offset = section.address + at, section.offset + at
    return ElfSection(MARKER_SECTION, 0, SHT_PROGBITS, SHF_ALLOC, address, offset, size, 0, 0, 1, 0)


def _without_code(library: FatLibrary, marker: ElfSection, gain: int, *, is_program: bool) -> HostLayout:
    section = library.section
    fat = msgspec.structs.replace(section, type=SHT_NOBITS, size=marker.address - section.address)
    sections = [fat if other == section else other for other in library.sections]
    spares = SPARES_OF_PROGRAM if is_program else SPARES_OF_LIBRARY
    tables, holder = (library.segments, [*sections, marker]), library.holder
    # The segment goes on behind the code that leaves: with the marker, if with nothing else.
    cut = cut_segment(tables, holder, (library.start, marker.offset), name=library.fat.name, spares=spares)
    # What is left of the segment has memory up to the marker.
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
    """The tables of a file, as they are."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[ElfSection, ...]


class Rewrite(msgspec.Struct, frozen=True):
    """What becomes of a file; all file offsets are those of the old one."""

    segments: tuple[Segment, ...]
    sections: tuple[tuple[ElfSection, ElfSection | None], ...]
    """Each section that changes, and what becomes of it: none for one that goes."""
    added: tuple[ElfSection, ...]
    changes: tuple[tuple[int, int], ...]
    """How many bytes are put in or, negative, taken out before which offset."""
    content: tuple[Replacement, ...]
    """What stands in the place of all that is put in or taken out, at new offsets."""
    writes: tuple[Replacement, ...]
    holder: Segment | None = None
    """The segment that bytes belong to which are put in where it begins: it stays there."""


class _Tail(msgspec.Struct, frozen=True):
    """The tables of sections and of their names, as they become, and where they go.

    Tables that nothing loaded follows grow where they are; others go to the file's end.
    """

    moves: OffsetMoves
    table: SectionTable
    names: bytes
    names_at: int
    table_at: int
    size: int


def rewrite_file(source: ElfBytes, tables: ElfTables, rewrite: Rewrite) -> FilePatch:
    """Return the patch that makes ``rewrite`` of the file ``source``.

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
    # Tables that something loaded follows go to the file's end.
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
    """Yield by how many bytes the tables grow that nothing loaded follows: they do so in their place."""
    header, names = tables.header, tables.sections[tables.header.section_names_index]
    if names.offset >= loaded_end:
        # As far as it is of any use, what is behind them stays aligned.
        behind = (s.alignment for s in tables.sections if s.type != SHT_NULL and s.offset > names.offset)
        alignment = min(max([_TABLE_ALIGNMENT, *behind]), _LARGEST_ALIGNMENT)
        yield names.offset + names.size, _aligned(names_size - names.size, alignment)
    if header.sections_offset >= loaded_end:
        stop = header.sections_offset + header.section_count * SECTION_LAYOUT.size
        yield stop, (count - len(tables.sections)) * SECTION_LAYOUT.size


def _name_sections(added: Sequence[ElfSection], names: bytes) -> tuple[list[ElfSection], bytes]:
    """Return new sections with the place of their names, and the section names with theirs."""
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
    """Yield all that is written over what has moved, at new offsets."""
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
        # What is loaded and takes no bytes of the file stays with what is before it.
        elif section in changed or (
            section.type == SHT_NOBITS and section.flags & SHF_ALLOC and not section.flags & SHF_TLS
        ):
            sections.append(msgspec.structs.replace(new, offset=tail.moves.end(min(new.offset, source.size))))
        else:
            sections.append(msgspec.structs.replace(new, offset=_moved_place(new.offset, source, tail)))
    yield Replacement.of(tail.table_at, msgspec.structs.replace(tail.table, sections=tuple(sections)).pack())
    yield from tail.table.header(tail.table_at)


def _moved_place(offset: int, source: ElfBytes, tail: _Tail) -> int:
    """Return the new file offset for one in a header; an offset outside of the file stays as it is."""
    return tail.moves.offset(offset) if offset <= source.size else offset
