"""The tables that a new run path changes: where they stand afterwards, and writing them."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.dynamic import DT_NULL, DT_STRSZ, DT_STRTAB, ENTRY_LAYOUT
from rocwheel.binary.elf.header import E_PHNUM, E_PHOFF, PT_DYNAMIC, SEGMENT_LAYOUT, Segment
from rocwheel.binary.elf.sections import SECTION_LAYOUT, SHT_DYNAMIC, SHT_DYNSYM, SHT_SYMTAB
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT
from rocwheel.binary.runpath.room import Position, find_growing_segment, grow_segment, make_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.elf.patch import PatchWriter
    from rocwheel.binary.runpath.image import Image
    from rocwheel.binary.runpath.strings import StringPlace

__all__ = ["Tables", "choose_tables", "write_string", "write_tables"]

_OFFSET: Final = Struct("<Q")
_COUNT: Final = Struct("<H")
_SYMBOL_VALUE_AT = 8
_STRING_SLACK = 256
_ENTRY_SLACK = 4


class Tables(msgspec.Struct, frozen=True):
    """Where the tables stand after the change."""

    strings: Position
    strings_size: int
    dynamic: Position
    dynamic_size: int
    segments: tuple[Segment, ...]
    segments_offset: int


def choose_tables(source: ElfBytes, image: Image, strings_size: int, entry_count: int) -> Tables:
    """Leave in place what fits there, and move only what doesn't.

    The string table goes last, with some slack, so that the next longer run path finds room there.
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


def _present_tables(image: Image) -> Tables:
    return Tables(
        strings=Position(image.strings.offset, image.strings.address),
        strings_size=image.strings.size,
        dynamic=Position(image.dynamic.offset, image.dynamic.address),
        dynamic_size=image.dynamic.capacity * ENTRY_LAYOUT.size,
        segments=image.segments,
        segments_offset=image.header.segments_offset,
    )


def _entries_fit(source: ElfBytes, image: Image, count: int) -> bool:
    """Return whether the dynamic section has that many entries, or a spare one behind its end for one more."""
    if count <= len(image.dynamic.entries):
        return True
    if count >= image.dynamic.capacity:
        return False
    spare = source.read(
        image.dynamic.offset + count * ENTRY_LAYOUT.size, ENTRY_LAYOUT.size, "the end of the dynamic section"
    )
    return not any(spare)


def _grow_strings(source: ElfBytes, image: Image, present: Tables, size: int) -> Tables | None:
    """Let the string table grow where it stands, if it is the last thing in file and memory."""
    last = find_growing_segment(source, image)
    if last is None or present.strings.offset + present.strings_size != last.end:
        return None
    segments = grow_segment(image.segments, last, size - present.strings_size)
    return msgspec.structs.replace(present, strings_size=size, segments=segments)


def _move(source: ElfBytes, image: Image, *, dynamic_size: int, strings_size: int) -> Tables:
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
    image: Image,
    tables: Tables,
    entries: Sequence[tuple[int, int]],
) -> None:
    """Write the dynamic section, and every header and symbol that says where a table stands."""
    _write_entries(writer, image, tables, entries)
    _write_segments(writer, image, tables)
    _write_sections(writer, source, image, tables)


def write_string(writer: PatchWriter, source: ElfBytes, image: Image, tables: Tables, placement: StringPlace) -> None:
    """Write the run path, and the whole string table if it has moved."""
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


def _write_entries(writer: PatchWriter, image: Image, tables: Tables, entries: Sequence[tuple[int, int]]) -> None:
    """Write the entries, and zeros behind them."""
    moved = {DT_STRTAB: tables.strings.address, DT_STRSZ: tables.strings_size}
    rows = [ENTRY_LAYOUT.pack(tag, moved.get(tag, value)) for tag, value in entries]
    has_moved = tables.dynamic.offset != image.dynamic.offset
    count = tables.dynamic_size // ENTRY_LAYOUT.size if has_moved else len(image.dynamic.entries)
    rows += [ENTRY_LAYOUT.pack(DT_NULL, 0)] * (count - len(rows))
    writer.write_rows(tables.dynamic.offset, b"".join(rows), ENTRY_LAYOUT.size)


def _write_segments(writer: PatchWriter, image: Image, tables: Tables) -> None:
    rows = b"".join(segment.pack() for segment in tables.segments)
    writer.write_rows(tables.segments_offset, rows, SEGMENT_LAYOUT.size)
    if tables.segments_offset != image.header.segments_offset:
        writer.write(E_PHOFF, _OFFSET.pack(tables.segments_offset))
        writer.write(E_PHNUM, _COUNT.pack(len(tables.segments)))


def _write_sections(writer: PatchWriter, source: ElfBytes, image: Image, tables: Tables) -> None:
    """Write the headers of the sections that have changed, and the symbols that stand for those that have moved."""
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


def _section_symbol_values(source: ElfBytes, image: Image, index: int) -> Iterator[int]:
    """Yield the file offset of the value of each symbol that is the address of the section ``index``."""
    address = _OFFSET.pack(image.sections[index].address)
    for table in image.sections:
        if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
            for position in source.find(address, table.offset, table.size, "the symbols"):
                is_value = (position - table.offset) % SYMBOL_LAYOUT.size == _SYMBOL_VALUE_AT
                if is_value and source.unpack(SYMBOL_LAYOUT, position - _SYMBOL_VALUE_AT, "a symbol")[3] == index:
                    yield position
