"""Edits the run path of an ELF file (``DT_RPATH``, ``DT_RUNPATH``), and moves tables where necessary."""

from __future__ import annotations

from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import Buffer, viewing
from rocwheel.binary.elf.dynamic import (
    DT_NEEDED,
    DT_NULL,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    ENTRY_LAYOUT,
    RUN_PATH_TAGS,
    DynamicFile,
    DynamicTable,
    RunpathTag,
    StringTable,
    counting_tag,
    is_program_only,
    names_tables,
    read_dynamic,
    read_string_table,
)
from rocwheel.binary.elf.header import (
    E_PHNUM,
    E_PHOFF,
    EM_AMDGPU,
    EM_MIPS,
    ET_DYN,
    ET_EXEC,
    HEADER_SIZE,
    PF_R,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_INTERP,
    PT_LOAD,
    PT_PHDR,
    SECTION_LAYOUT,
    SEGMENT_LAYOUT,
    SHF_ALLOC,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_GNU_VERDEF,
    SHT_GNU_VERNEED,
    SHT_NOBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    ElfBytes,
    ElfError,
    ElfSection,
    Header,
    Segment,
    is_detached_debug,
    load_segments,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.elf.mapping import find_offset, realigned, require_loadable
from rocwheel.binary.elf.patch import PatchWriter, require_apart
from rocwheel.binary.elf.relocations import RELOCATION_SIZE, iter_relocations
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT, SymbolReader, VersionReader
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.patch import FilePatch


_SINGLE = {SHT_DYNAMIC: "dynamic sections", SHT_SYMTAB: "symbol tables", SHT_DYNSYM: "dynamic symbol tables"}
_MOST_OF_A_KIND = 4
_LOADERS = ("ld-linux", "ld64.so", "ld.so")


class ElfImage(msgspec.Struct, frozen=True):
    """The tables of one dynamically linked ELF file."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[ElfSection, ...]
    dynamic: DynamicTable
    strings: StringTable
    strings_section: int | None
    """The index of the section with the string table, or `None` for a file without section headers."""

    def dynamic_file(self, source: ElfBytes) -> DynamicFile:
        """Return the input for the readers of symbols and versions; ``source`` contains the bytes of this image."""
        return DynamicFile(source, self.segments, self.dynamic, self.strings)

    @property
    def run_path_offset(self) -> int | None:
        """The string table offset of the current run path, or `None` if there is no run path or it is empty."""
        rpath, runpath = self.dynamic.value(DT_RPATH), self.dynamic.value(DT_RUNPATH)
        return (rpath if counting_tag(rpath, runpath) is RunpathTag.RPATH else runpath) or None

    @property
    def starts_as_program(self) -> bool:
        """Whether a kernel may start the file, so that its program headers are read from memory."""
        return self.header.type == ET_EXEC or self.dynamic.is_pie or self._has_interpreter

    @property
    def is_static(self) -> bool:
        """Whether the file is a program that needs no loader: a static PIE, which relocates itself."""
        return self.starts_as_program and not self._has_interpreter and self.dynamic.value(DT_NEEDED) is None

    @property
    def _has_interpreter(self) -> bool:
        return any(segment.type == PT_INTERP for segment in self.segments)


def read_image(source: ElfBytes) -> ElfImage:
    """Read and check the tables; raise `ElfError` for a file that is inconsistent or can't have a run path."""
    header = read_header(source)
    segments = read_segments(source, header)
    sections = read_section_table(source, header)
    _check_kind(source, header, segments, sections)
    # Each dynamic section needs a search of all symbols; the gABI allows one dynamic section.
    for kind, what in _SINGLE.items():
        if (number := sum(section.type == kind for section in sections)) > _MOST_OF_A_KIND:
            raise ElfError(source.name, f"{number} {what}", expected="one, as in every linked file")
    require_loadable(source, header, segments)
    dynamic = read_dynamic(source, segments)
    if dynamic is None:
        raise _no_dynamic_section(source)
    strings = read_string_table(source, segments, dynamic)
    _check_loader(source, dynamic, strings)
    image = ElfImage(header, segments, sections, dynamic, strings, _find_strings_section(sections, strings))
    if (image.run_path_offset or 0) >= strings.size:
        raise ElfError(source.name, "a run path that begins outside the dynamic string table")
    _check_apart(source, image)
    return image


def _check_apart(source: ElfBytes, image: ElfImage) -> None:
    """Reject tables that overlap, because changing one table would damage the other."""
    header, entries = image.header, image.dynamic.entries
    ranges = [
        (0, HEADER_SIZE),
        (header.segments_offset, header.segment_count * SEGMENT_LAYOUT.size),
        (header.sections_offset, header.section_count * SECTION_LAYOUT.size),
        (image.dynamic.offset, (len(entries) + 1) * ENTRY_LAYOUT.size),
        (image.strings.offset, image.strings.size),
    ]
    require_apart(sorted((offset, offset + size) for offset, size in ranges if size), name=source.name)


def _check_kind(source: ElfBytes, header: Header, segments: Sequence[Segment], sections: Sequence[ElfSection]) -> None:
    if header.machine == EM_AMDGPU:
        raise ElfError(
            source.name, "an AMD GPU code object, which can't have a run path", remedy="Leave the file unchanged."
        )
    if header.machine == EM_MIPS:
        raise ElfError(
            source.name,
            "a MIPS file, whose dynamic section can't be changed in place",
            remedy="Link the file with the run path that it needs.",
        )
    if header.type not in {ET_EXEC, ET_DYN} or not any(segment.type == PT_DYNAMIC for segment in segments):
        raise _no_dynamic_section(source)
    if is_detached_debug(sections) and not names_tables(source, segments):
        raise ElfError(source.name, "debug information that was detached from a program", expected="the program itself")


def _check_loader(source: ElfBytes, dynamic: DynamicTable, strings: StringTable) -> None:
    """Reject glibc's loader, which asserts that it has no run path and couldn't start programs if it had one."""
    offset = dynamic.value(DT_SONAME)
    if offset is not None and strings.string(source, offset, "the SONAME").startswith(_LOADERS):
        raise ElfError(
            source.name, "the dynamic loader itself, which can't have a run path", remedy="Leave the file unchanged."
        )


def _no_dynamic_section(source: ElfBytes) -> ElfError:
    return ElfError(
        source.name,
        "no dynamic section, so no space for a run path",
        expected="a shared library or a dynamically linked program",
        remedy="Leave the file unchanged: static programs and object files don't search for libraries.",
    )


def _find_strings_section(sections: Sequence[ElfSection], strings: StringTable) -> int | None:
    for index, section in enumerate(sections):
        is_loaded = section.type == SHT_STRTAB and section.flags & SHF_ALLOC
        if is_loaded and (section.address, section.offset) == (strings.address, strings.offset):
            return index
    return None


_SYMBOL_SHIFT = 32
_DT_PLTRELSZ, _DT_RELA, _DT_RELASZ, _DT_JMPREL, _DT_RELACOUNT = 2, 7, 8, 23, 0x6FFFFFF9


def find_relocation_reach(source: ElfBytes, image: ElfImage) -> int:
    """Return the highest sum of a relocation's address and its symbol's size, or 0 if there are no such relocations.

    eu-elflint assumes that a relocation changes that many bytes, even though a GOT slot has only eight. If a read-only
    segment begins within those bytes, eu-elflint reports text relocations.
    """
    symbols = SymbolReader(image.dynamic_file(source))
    sizes = [fields[5] for fields in symbols.symbols()]
    return max(
        (address + sizes[symbol] for address, symbol in _relocations(source, image) if symbol < len(sizes)), default=0
    )


def _relocations(source: ElfBytes, image: ElfImage) -> Iterator[tuple[int, int]]:
    """Yield the address and symbol of each relocation with a symbol, skipping the relative relocations at the start."""
    dynamic = image.dynamic
    relative = (dynamic.value(_DT_RELACOUNT) or 0) * RELOCATION_SIZE
    for table, length, skip in (_DT_RELA, _DT_RELASZ, relative), (_DT_JMPREL, _DT_PLTRELSZ, 0):
        address, size = dynamic.value(table), dynamic.value(length)
        if address is not None and size is not None and skip < size:
            offset, _ = find_offset(source, image.segments, address, "the relocation table")
            source.require(offset, size, "the relocation table")
            for place, info, _ in iter_relocations(source, offset + skip, size - skip):
                if symbol := info >> _SYMBOL_SHIFT:
                    yield place, symbol


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
        """Return the position ``size`` bytes after this position."""
        return Position(self.offset + size, self.address + size)


class Room(msgspec.Struct, frozen=True):
    """Space for tables, and the program headers that load the tables from this space."""

    place: Position
    """The first free byte."""
    segments: tuple[Segment, ...]
    segments_offset: int
    """The file offset of the program headers."""


def find_growing_segment(source: ElfBytes, image: ElfImage) -> Segment | None:
    """Return the segment that is last in both the file and the memory image and can therefore grow, or `None`.

    A segment from an earlier edit is suitable, so a second edit doesn't add another segment. A segment that contains
    code isn't suitable.
    """
    last = max(load_segments(image.segments), key=lambda segment: segment.memory_end)
    ends_file = last.end == source.size and last.file_size == last.memory_size
    return last if ends_file and not last.flags & PF_X else None


def make_room(source: ElfBytes, image: ElfImage, size: int, *, writable: bool) -> Room:
    """Make room for ``size`` bytes of tables, in the growing segment if possible, or otherwise in a new segment."""
    last = find_growing_segment(source, image)
    if last is not None and (last.flags & PF_W or not writable):
        padding = -source.size % _TABLE_ALIGNMENT
        place = Position(last.end, last.address + last.file_size).after(padding)
        return Room(place, grow_segment(image.segments, last, padding + size), image.header.segments_offset)
    return _add_segment(source, image, size, PF_R | PF_W if writable else PF_R)


def grow_segment(segments: tuple[Segment, ...], last: Segment, size: int) -> tuple[Segment, ...]:
    """Return the segments as they are after one of them, ``last``, grows by ``size`` bytes."""
    grown = msgspec.structs.replace(last, file_size=last.file_size + size, memory_size=last.memory_size + size)
    return tuple(grown if segment is last else segment for segment in segments)


def _add_segment(source: ElfBytes, image: ElfImage, size: int, flags: int) -> Room:
    """Add a segment that starts with the program headers, which no longer fit at their original position."""
    count = len(image.segments) + 1
    if count > _MOST_SEGMENTS:
        raise ElfError(source.name, f"{count - 1} program headers", expected=f"fewer than {_MOST_SEGMENTS}")
    table_size = _aligned(count * SEGMENT_LAYOUT.size, _TABLE_ALIGNMENT)
    page = _page_size(image)
    start = _choose_place(source, image, page)
    if start.address + table_size + size > _ADDRESS_LIMIT:
        raise ElfError(source.name, f"no room in memory after {start.address:#x} for another segment")
    whole = table_size + size
    added = Segment(PT_LOAD, flags, start.offset, start.address, start.address, whole, whole, page)
    return Room(start.after(table_size), _inserted(image.segments, added, start), start.offset)


def _inserted(segments: tuple[Segment, ...], added: Segment, table: Position) -> tuple[Segment, ...]:
    """Insert the new segment in order, after the last loaded segment, and make ``PT_PHDR`` point to the moved table."""
    size = (len(segments) + 1) * SEGMENT_LAYOUT.size
    moved = [
        segment.at(table.offset, table.address, size) if segment.type == PT_PHDR else segment for segment in segments
    ]
    position = max(index for index, segment in enumerate(segments) if segment.type == PT_LOAD) + 1
    return (*moved[:position], added, *moved[position:])


def _choose_place(source: ElfBytes, image: ElfImage, page: int) -> Position:
    """Return the position of the new segment, which starts on a page boundary and begins with the program headers.

    In the file, the segment also has separate pages. The dynamic loader uses the first segment that has ``e_phoff`` on
    one of its pages, even if the rest of that page is bss in memory.

    Linux versions before 5.18 tell a program that its program headers are at offset ``e_phoff`` from the load address
    of its first segment. The dynamic loader and other programs compute the same address themselves. The address is
    correct only if the new segment is at the same distance from the first segment in memory as in the file. The memory
    image is usually longer than the file, so zeros in the file fill the difference. For a library that would need many
    zeros (because of a large bss), no zeros are added: its loader finds the segment that contains ``e_phoff``.
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
            f"a program whose memory image is {offset - free_offset:#x} bytes longer than its file",
            expected=f"at most {most_padding:#x} bytes and segments on page boundaries",
            remedy="Link the file with the run path that it needs.",
        )
    return Position(free_offset, free_address)


def _find_free_address(source: ElfBytes, image: ElfImage) -> int:
    end = max(segment.memory_end for segment in load_segments(image.segments))
    reach = find_relocation_reach(source, image)
    return reach + 1 if end <= reach <= end + _LARGEST_GAP else end


def _page_size(image: ElfImage) -> int:
    """Return the largest page size that the file was linked for, but at most the largest page size of any machine."""
    alignment = max(segment.alignment for segment in load_segments(image.segments))
    page = _SMALLEST_PAGE
    while page < min(alignment, _LARGEST_PAGE):
        page *= 2
    return page


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


# DT_SUNW_AUXILIARY, DT_SUNW_FILTER, DT_CONFIG, DT_DEPAUDIT, DT_AUDIT, DT_AUXILIARY, DT_USED, DT_FILTER
_RARE_STRINGS = {0x6000000D, 0x6000000F, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC, 0x7FFFFFFD, 0x7FFFFFFE, 0x7FFFFFFF}
_STRING_TAGS = {DT_NEEDED, DT_SONAME} | _RARE_STRINGS
_KNOWN_USERS = {SHT_DYNSYM, SHT_DYNAMIC, SHT_GNU_VERDEF, SHT_GNU_VERNEED}


class StringPlace(msgspec.Struct, frozen=True):
    """The position of a run path in the string table, and the bytes to write (empty if they are already there)."""

    offset: int
    text: bytes
    table_size: int
    """The minimum size of the table, which exceeds the current size if the text doesn't fit."""


def place_string(source: ElfBytes, image: ElfImage, text: bytes) -> StringPlace:
    """Choose a position for ``text`` so that no other string changes.

    1. Where the text already is, by itself or at the end of another string.
    2. Over the current run path, if no other string uses those bytes and there is room. There is also room if the table
       ends there and so can grow.
    3. In the zero bytes at the end of the table, if no string begins there.
    4. At the end of the table, which then must grow.

    Raises `ElfError` for a table that doesn't end with a zero byte.
    """
    strings = image.strings
    table = source.read(strings.offset, strings.size, "the dynamic string table")
    if not table.endswith(b"\0"):
        raise ElfError(source.name, "a dynamic string table that doesn't end with a zero byte")
    wanted = text + b"\0"
    present = image.run_path_offset
    if present is not None and table.startswith(wanted, present):
        return StringPlace(present, b"", strings.size)
    found = table.find(wanted)
    if found >= 0:
        return StringPlace(found, b"", strings.size)
    return _place_new(source, image, table, wanted)


def _place_new(source: ElfBytes, image: ElfImage, table: bytes, wanted: bytes) -> StringPlace:
    present = image.run_path_offset
    free = len(table.rstrip(b"\0")) + 1
    if present is not None:
        old_end = table.index(b"\0", present) + 1
        room_end = len(table) if old_end == free else old_end
        fits = present + len(wanted) <= room_end or room_end == len(table)
        if fits and not _is_shared(source, image, table, present, room_end):
            padded = wanted.ljust(old_end - present, b"\0")
            return StringPlace(present, padded, max(len(table), present + len(wanted)))
    start = len(table) if _is_shared(source, image, table, free, len(table)) else free
    return StringPlace(start, wanted, max(len(table), start + len(wanted)))


def _is_shared(source: ElfBytes, image: ElfImage, table: bytes, start: int, end: int) -> bool:
    """Return whether anything except the run path uses the table's bytes from ``start`` to ``end``."""
    if start >= end:
        return False
    if table[start - 1] != 0 or _has_unknown_users(image):
        return True
    return any(start <= offset < end for offset in _string_offsets(source, image))


def _has_unknown_users(image: ElfImage) -> bool:
    index = image.strings_section
    if index is None:
        return False
    linked = (section.type for section in image.sections if section.link == index)
    return index == image.header.section_names_index or any(kind not in _KNOWN_USERS for kind in linked)


def _string_offsets(source: ElfBytes, image: ElfImage) -> Iterator[int]:
    """Return the table offset of every name in the file except its run path."""
    file = image.dynamic_file(source)
    versions = VersionReader(file)
    return chain(
        (value for tag, value in image.dynamic.entries if tag in _STRING_TAGS),
        chain.from_iterable(versions.need_offsets()),
        versions.parent_offsets(),
        (fields[0] for fields in SymbolReader(file).symbols()),
    )


_OFFSET: Final = Struct("<Q")
_COUNT: Final = Struct("<H")
_SYMBOL_VALUE_AT = 8
_STRING_SLACK = 256
_ENTRY_SLACK = 4


class Tables(msgspec.Struct, frozen=True):
    """The positions of the tables after the change."""

    strings: Position
    strings_size: int
    dynamic: Position
    dynamic_size: int
    segments: tuple[Segment, ...]
    segments_offset: int


def choose_tables(source: ElfBytes, image: ElfImage, strings_size: int, entry_count: int) -> Tables:
    """Leave tables where they are if they fit, and move only tables that don't fit.

    The string table is last and has some free space, so that there is room for a slightly longer run path later.
    """
    present = _present_tables(image)
    entries_fit = _entries_fit(source, image, entry_count)
    strings_fit = strings_size <= image.strings.size
    if entries_fit and strings_fit:
        return present
    if entries_fit and (grown := _grow_strings(source, image, present, strings_size + _STRING_SLACK)):
        return grown
    return _move(
        source,
        image,
        dynamic_size=0 if entries_fit else (entry_count + 1 + _ENTRY_SLACK) * ENTRY_LAYOUT.size,
        strings_size=0 if strings_fit else strings_size + _STRING_SLACK,
    )


def _present_tables(image: ElfImage) -> Tables:
    return Tables(
        strings=Position(image.strings.offset, image.strings.address),
        strings_size=image.strings.size,
        dynamic=Position(image.dynamic.offset, image.dynamic.address),
        dynamic_size=image.dynamic.capacity * ENTRY_LAYOUT.size,
        segments=image.segments,
        segments_offset=image.header.segments_offset,
    )


def _entries_fit(source: ElfBytes, image: ElfImage, count: int) -> bool:
    """Return whether the dynamic section has room for that many entries, including a spare entry after its end."""
    if count <= len(image.dynamic.entries):
        return True
    if count >= image.dynamic.capacity:
        return False
    spare = source.read(
        image.dynamic.offset + count * ENTRY_LAYOUT.size, ENTRY_LAYOUT.size, "the end of the dynamic section"
    )
    return not any(spare)


def _grow_strings(source: ElfBytes, image: ElfImage, present: Tables, size: int) -> Tables | None:
    """Grow the string table in place if it is last in both the file and memory."""
    last = find_growing_segment(source, image)
    if last is None or present.strings.offset + present.strings_size != last.end:
        return None
    segments = grow_segment(image.segments, last, size - present.strings_size)
    return msgspec.structs.replace(present, strings_size=size, segments=segments)


def _move(source: ElfBytes, image: ElfImage, *, dynamic_size: int, strings_size: int) -> Tables:
    room = make_room(source, image, dynamic_size + strings_size, writable=bool(dynamic_size))
    tables = msgspec.structs.replace(
        _present_tables(image), segments=room.segments, segments_offset=room.segments_offset
    )
    if dynamic_size:
        place = room.place
        segments = tuple(
            segment.at(place.offset, place.address, dynamic_size) if segment.type == PT_DYNAMIC else segment
            for segment in room.segments
        )
        tables = msgspec.structs.replace(tables, dynamic=place, dynamic_size=dynamic_size, segments=segments)
    if strings_size:
        place = room.place.after(dynamic_size)
        tables = msgspec.structs.replace(tables, strings=place, strings_size=strings_size)
    return tables


def write_tables(
    writer: PatchWriter,
    source: ElfBytes,
    image: ElfImage,
    tables: Tables,
    entries: Sequence[tuple[int, int]],
) -> None:
    """Write the dynamic section, and every header and symbol that contains the position of a table."""
    _write_entries(writer, image, tables, entries)
    _write_segments(writer, image, tables)
    _write_sections(writer, source, image, tables)


def write_string(
    writer: PatchWriter, source: ElfBytes, image: ElfImage, tables: Tables, placement: StringPlace
) -> None:
    """Write the run path, or the entire string table if it was moved."""
    if tables.strings.offset == image.strings.offset:
        text = placement.text
        if tables.strings_size > image.strings.size:
            text = text.ljust(tables.strings_size - placement.offset, b"\0")
        if text:
            writer.write(tables.strings.offset + placement.offset, text)
        return
    table = bytearray(source.read(image.strings.offset, image.strings.size, "the dynamic string table"))
    table = table.ljust(tables.strings_size, b"\0")
    table[placement.offset : placement.offset + len(placement.text)] = placement.text
    writer.write(tables.strings.offset, bytes(table))


def _write_entries(writer: PatchWriter, image: ElfImage, tables: Tables, entries: Sequence[tuple[int, int]]) -> None:
    """Write the entries, followed by zeros."""
    moved = {DT_STRTAB: tables.strings.address, DT_STRSZ: tables.strings_size}
    rows = [ENTRY_LAYOUT.pack(tag, moved.get(tag, value)) for tag, value in entries]
    has_moved = tables.dynamic.offset != image.dynamic.offset
    count = tables.dynamic_size // ENTRY_LAYOUT.size if has_moved else len(image.dynamic.entries)
    rows += [ENTRY_LAYOUT.pack(DT_NULL, 0)] * (count - len(rows))
    writer.write_rows(tables.dynamic.offset, b"".join(rows), ENTRY_LAYOUT.size)


def _write_segments(writer: PatchWriter, image: ElfImage, tables: Tables) -> None:
    rows = b"".join(segment.pack() for segment in tables.segments)
    writer.write_rows(tables.segments_offset, rows, SEGMENT_LAYOUT.size)
    if tables.segments_offset != image.header.segments_offset:
        writer.write(E_PHOFF, _OFFSET.pack(tables.segments_offset))
        writer.write(E_PHNUM, _COUNT.pack(len(tables.segments)))


def _write_sections(writer: PatchWriter, source: ElfBytes, image: ElfImage, tables: Tables) -> None:
    """Write the headers of the changed sections, and the symbols of the moved sections."""
    for index, section in enumerate(image.sections):
        if index == image.strings_section:
            place, size = tables.strings, tables.strings_size
        elif section.type == SHT_DYNAMIC and tables.dynamic.offset != image.dynamic.offset:
            place, size = tables.dynamic, tables.dynamic_size
        else:
            continue
        changed = msgspec.structs.replace(section, offset=place.offset, address=place.address, size=size)
        writer.write(image.header.sections_offset + index * SECTION_LAYOUT.size, changed.pack())
        if place.address != section.address:
            for offset in _section_symbol_values(source, image, index):
                writer.write(offset, _OFFSET.pack(place.address))


def _section_symbol_values(source: ElfBytes, image: ElfImage, index: int) -> Iterator[int]:
    """Yield the file offset of the value of each symbol whose value is the address of the section ``index``."""
    address = _OFFSET.pack(image.sections[index].address)
    for table in image.sections:
        if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
            for position in source.find(address, table.offset, table.size, "the symbols"):
                is_value = (position - table.offset) % SYMBOL_LAYOUT.size == _SYMBOL_VALUE_AT
                if is_value and source.unpack(SYMBOL_LAYOUT, position - _SYMBOL_VALUE_AT, "a symbol")[3] == index:
                    yield position


def plan_runpath(data: Buffer, value: str, tag: RunpathTag, *, name: str) -> FilePatch:
    """Plan the change that sets the file's run path to ``value``, using only ``tag``; an empty value removes it.

    The string changes in place if it fits and no other string uses those bytes. Otherwise, the string table moves to a
    segment at the end of the file, which later changes detect and extend. No other section moves. If the run path is
    already correct, the patch changes nothing. Library segments that glibc before 2.35 rejects, such as those that
    patchelf 0.18 writes, are realigned so that glibc accepts them.

    Raises `ElfError` for a static program, for a code object, and for a damaged file; ``name`` identifies the file in
    errors. A run path can be removed from a static PIE. Also raises `ElfError` if a program that has data after its
    last section would grow. Such a program may locate the data relative to the end of the file, as self-extracting
    programs do.
    """
    text = _encode(value, name)
    with viewing(data) as view:
        source = ElfBytes(view, name)
        image = read_image(source)
        # Align the segments so that every glibc maps them, if that is possible and glibc maps them at all.
        is_program = is_program_only(image.header.type, image.segments, image.dynamic)
        image = msgspec.structs.replace(image, segments=realigned(image.segments, is_program=is_program))
        if text and image.is_static:
            raise ElfError(
                name,
                "a static program, which doesn't search for libraries, and which glibc terminates if it has a run path",
                expected="a shared library or a dynamically linked program",
                remedy="Leave the file unchanged. To remove its run path, use an empty value.",
            )
        if _is_set(source, image, value, tag):
            return _with_entries(PatchWriter(source), source, image, image.dynamic.entries)
        patch = _plan(source, image, text, tag)
        if patch.size > source.size and image.starts_as_program:
            _require_no_payload(source, image)
        return patch


_BLOCK = 1 << 20


def _require_no_payload(source: ElfBytes, image: ElfImage) -> None:
    """Raise `ElfError` for a file that contains nonzero bytes after everything that its headers describe."""
    header = image.header
    end = max(
        header.sections_offset + header.section_count * SECTION_LAYOUT.size,
        *(segment.offset + segment.file_size for segment in image.segments),
        *(section.offset + section.size for section in image.sections if section.type != SHT_NOBITS),
    )
    rest, what = source.size - end, "the data after the last section"
    starts = range(end, source.size, _BLOCK)
    if any(any(source.read(start, min(_BLOCK, source.size - start), what)) for start in starts):
        raise ElfError(
            source.name,
            f"{count(rest, 'byte')} after the last section, which the program may read from the end of the file",
            expected="a program that ends with its sections, or a shorter run path that fits into the file",
            remedy="Link the program with the run path that it needs.",
        )


def _encode(value: str, name: str) -> bytes:
    try:
        text = value.encode(errors="surrogateescape")
    except UnicodeEncodeError as e:
        raise ElfError(name, f"the requested run path {value!r}", expected="text or the bytes of a path") from e
    if b"\0" in text:
        raise ElfError(name, f"the requested run path {value!r}", expected="a run path without zero bytes")
    return text


def _is_set(source: ElfBytes, image: ElfImage, value: str, tag: RunpathTag) -> bool:
    present = [(other, offset) for other, offset in image.dynamic.entries if other in RUN_PATH_TAGS.values()]
    if not value or len(present) != 1:
        return not value and not present
    other, offset = present[0]
    return other == RUN_PATH_TAGS[tag] and image.strings.path(source, offset, "the run path") == value


def _plan(source: ElfBytes, image: ElfImage, text: bytes, tag: RunpathTag) -> FilePatch:
    writer = PatchWriter(source)
    if not text:
        return _with_entries(writer, source, image, _without_run_path(image.dynamic.entries))
    placement = place_string(source, image, text)
    # The entry replaces the first run path entry, or goes to the end if there is no such entry.
    old, wanted = image.dynamic.entries, (RUN_PATH_TAGS[tag], placement.offset)
    position = next((index for index, (one, _) in enumerate(old) if one in RUN_PATH_TAGS.values()), len(old))
    entries = [*old[:position], wanted, *_without_run_path(old[position:])]
    tables = choose_tables(source, image, placement.table_size, len(entries))
    write_string(writer, source, image, tables, placement)
    write_tables(writer, source, image, tables, entries)
    return writer.patch()


def _with_entries(
    writer: PatchWriter, source: ElfBytes, image: ElfImage, entries: Sequence[tuple[int, int]]
) -> FilePatch:
    """Return the patch that writes ``entries`` to the dynamic section.

    The section must already have that many entries.
    """
    write_tables(writer, source, image, choose_tables(source, image, 0, len(entries)), entries)
    return writer.patch()


def _without_run_path(entries: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [entry for entry in entries if entry[0] not in RUN_PATH_TAGS.values()]
