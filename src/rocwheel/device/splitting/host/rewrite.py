"""Writing an ELF file anew whose parts have moved: its tables, and what refers to them, in one patch."""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import Moves
from rocwheel.binary.elf.header import (
    E_PHOFF,
    SECTION_LAYOUT,
    SHF_ALLOC,
    SHF_TLS,
    SHT_NOBITS,
    SHT_NULL,
    ElfBytes,
    ElfError,
    Header,
    Section,
    Segment,
    load_segments,
)
from rocwheel.binary.elf.patch import SectionTable, order_sections, patch_of_writes, require_plain_numbers
from rocwheel.core.patch import FilePatch, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["ElfTables", "Rewrite", "rewrite_file"]

_OFFSET: Final = Struct("<Q")
_TABLE_ALIGNMENT, _LARGEST_ALIGNMENT = 8, 4096


class ElfTables(msgspec.Struct, frozen=True):
    """The tables of a file, as they are."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]


class Rewrite(msgspec.Struct, frozen=True):
    """What becomes of a file; all file offsets are those of the old one."""

    segments: tuple[Segment, ...]
    sections: tuple[tuple[Section, Section | None], ...]
    """Each section that changes, and what becomes of it: none for one that goes."""
    added: tuple[Section, ...]
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

    moves: Moves
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
    tail = _plan_tail(source, tables, rewrite)
    edits = patch_of_writes(_iter_edits(source, tables, rewrite, tail), tail.size, name=source.name)
    moved = _without_gaps(tuple(tail.moves.iter_moved(source.size)))
    pieces = sorted([*rewrite.content, *moved], key=lambda piece: piece.start)
    return FilePatch(tail.moves.offset(source.size), tuple(pieces)).then(edits)


def _without_gaps(pieces: Sequence[Replacement]) -> Iterator[Replacement]:
    """Yield ``pieces`` in their rising order, with zeros in between."""
    position = pieces[0].start if pieces else 0
    for piece in pieces:
        if position < piece.start:
            yield Replacement(position, piece.start)
        yield piece
        position = piece.stop


def _plan_tail(source: ElfBytes, tables: ElfTables, rewrite: Rewrite) -> _Tail:
    header, old = tables.header, tables.sections
    names_section = old[header.section_names_index]
    names = source.read(names_section.offset, names_section.size, "the section names")
    added, names = _name_sections(rewrite.added, names)
    gone = [before for before, after in rewrite.sections if after is None]
    table = order_sections(old, header.section_names_index, added=added, gone=gone)
    loaded_end = max(segment.end for segment in load_segments(tables.segments))
    moves = Moves.of([*rewrite.changes, *_growths(tables, len(names), len(table.sections), loaded_end)])
    size = moves.offset(source.size)
    names_at, table_at = moves.offset(names_section.offset), moves.offset(header.sections_offset)
    # Tables that something loaded follows go to the file's end.
    if names_section.offset < loaded_end and len(names) > names_section.size:
        names_at, size = size, size + len(names)
    if header.sections_offset < loaded_end:
        table_at = _aligned(size, _TABLE_ALIGNMENT)
        size = table_at + len(table.sections) * SECTION_LAYOUT.size
    return _Tail(moves, table, names, names_at, table_at, size)


def _growths(tables: ElfTables, names_size: int, count: int, loaded_end: int) -> Iterator[tuple[int, int]]:
    """Yield by how many bytes the tables grow that nothing loaded follows: they do so in their place."""
    header, names = tables.header, tables.sections[tables.header.section_names_index]
    if names.offset >= loaded_end:
        yield names.offset + names.size, _aligned(names_size - names.size, _alignment_behind(tables, names))
    if header.sections_offset >= loaded_end:
        stop = header.sections_offset + header.section_count * SECTION_LAYOUT.size
        yield stop, (count - len(tables.sections)) * SECTION_LAYOUT.size


def _name_sections(added: Sequence[Section], names: bytes) -> tuple[list[Section], bytes]:
    """Return new sections with the place of their names, and the section names with theirs."""
    named = []
    for section in added:
        names, at = _with_name(names, section.name.encode())
        named.append(msgspec.structs.replace(section, name_offset=at))
    return named, names


def _with_name(names: bytes, name: bytes) -> tuple[bytes, int]:
    """Return the section names with one more, unless it is there, and where it begins."""
    found = names.find(b"\0" + name + b"\0")
    if found >= 0:
        return names, found + 1
    return names + name + b"\0", len(names)


def _alignment_behind(tables: ElfTables, names: Section) -> int:
    """Return what the sections behind the section names ask of their file offsets, as far as that is of any use."""
    behind = (s.alignment for s in tables.sections if s.type != SHT_NULL and s.offset > names.offset)
    return min(max([_TABLE_ALIGNMENT, *behind]), _LARGEST_ALIGNMENT)


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
    yield Replacement.of(segments_at, b"".join(_packed(segment, source) for segment in segments))
    yield Replacement.of(tail.names_at, tail.names)
    yield Replacement.of(tail.table_at, _pack_sections(source, tables, rewrite, tail))
    yield from tail.table.header(tail.table_at)


def _packed(segment: Segment, source: ElfBytes) -> bytes:
    try:
        return segment.pack()
    except struct.error as e:
        raise ElfError(source.name, f"a program header that ends beyond all addresses: {segment}") from e


def _moved_place(offset: int, source: ElfBytes, tail: _Tail) -> int:
    """Return the new file offset for one in a header; an offset outside of the file stays as it is."""
    return tail.moves.offset(offset) if offset <= source.size else offset


def _pack_sections(source: ElfBytes, tables: ElfTables, rewrite: Rewrite, tail: _Tail) -> bytes:
    names = tables.sections[tables.header.section_names_index]
    changed = dict(rewrite.sections)
    sections = []
    for section in tail.table.sections:
        new = changed.get(section) or section
        if section == names:
            sections.append(msgspec.structs.replace(new, offset=tail.names_at, size=len(tail.names)))
        elif section in changed or _is_empty(section):
            sections.append(msgspec.structs.replace(new, offset=tail.moves.end(min(new.offset, source.size))))
        else:
            sections.append(msgspec.structs.replace(new, offset=_moved_place(new.offset, source, tail)))
    return msgspec.structs.replace(tail.table, sections=tuple(sections)).pack()


def _is_empty(section: Section) -> bool:
    """Return whether a section is loaded, but takes no bytes of the file: it stays with what is before it."""
    return section.type == SHT_NOBITS and bool(section.flags & SHF_ALLOC) and not section.flags & SHF_TLS
