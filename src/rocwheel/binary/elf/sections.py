"""The section headers of an ELF file (gABI, "Sections"); linkers and debuggers need them, loaders don't."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.bytes import Buffer, ElfBytes, ElfError, viewing
from rocwheel.binary.elf.header import Header, read_header
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Section", "read_section_table", "read_sections"]

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = (
    0, 1, 2, 3, 4, 6, 7, 8, 11,
)  # fmt: skip
SHT_SYMTAB_SHNDX, SHT_RELR = 18, 19
SHT_GNU_VERDEF, SHT_GNU_VERNEED = 0x6FFFFFFD, 0x6FFFFFFE
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
SECTION_LAYOUT: Final = Struct("<IIQQQQIIQQ")


class Section(msgspec.Struct, frozen=True):
    """One section header; sizes and offsets in bytes, ``link`` an index into the section headers."""

    name: str
    name_offset: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def has_bytes(self) -> bool:
        """Whether the section is one and has bytes in the file: of one of type NULL, all else means nothing."""
        return self.type not in {SHT_NULL, SHT_NOBITS}

    def pack(self) -> bytes:
        """Return the 64 bytes of this section header."""
        return SECTION_LAYOUT.pack(*msgspec.structs.astuple(self)[1:])


def read_sections(data: Buffer, *, name: str) -> tuple[Section, ...]:
    """Read the section headers, the null one first; a file without them gives an empty tuple.

    Raises `ElfError` when the file is not a usable ELF file or a section lies outside it; ``name`` is what errors call
    the file.
    """
    with viewing(data) as view:
        source = ElfBytes(view, name)
        return read_section_table(source, read_header(source))


def read_section_table(source: ElfBytes, header: Header) -> tuple[Section, ...]:
    """Read the section headers of a file whose header is at hand; raise `ElfError` for what lies outside the file."""
    size = header.section_count * SECTION_LAYOUT.size
    table = source.read(header.sections_offset if size else 0, size, "the section header table")
    rows = list(SECTION_LAYOUT.iter_unpack(table))
    for row in rows:
        if row[1] not in {SHT_NULL, SHT_NOBITS}:
            source.require(row[4], row[5], "a section")
    if not rows:
        return ()
    if header.section_names_index >= len(rows):
        raise ElfError(
            source.name, f"section names in section {header.section_names_index}, of {count(len(rows), 'section')}"
        )
    start, length = rows[header.section_names_index][4:6]
    source.require(start, length, "the section names")
    return tuple(Section(_section_name(source, start, length, row[0]), *row) for row in rows)


def _section_name(source: ElfBytes, start: int, length: int, offset: int) -> str:
    if offset == 0 or length == 0:
        return ""
    return source.string(start + min(offset, length), start + length, "a section name")


def is_detached_debug(sections: Iterable[Section]) -> bool:
    """Return whether the file holds only debug information, split off a program (``objcopy --only-keep-debug``).

    Such a file keeps the program headers of its program, but of what they describe it holds nothing except notes.
    """
    loaded = [section.type for section in sections if section.flags & SHF_ALLOC]
    return bool(loaded) and all(kind in {SHT_NOBITS, SHT_NOTE} for kind in loaded)
