"""Reads the ELF header, program headers, and section headers of 64-bit little-endian files with bounds checks.

The format is defined by the gABI.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import BoundedBytes, Buffer, viewing
from rocwheel.binary.kind import ELF_MAGIC
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable


class ElfError(InputError):
    """An error for an ELF file that is damaged, has an unsupported class, or lacks data that an operation needs."""


class ElfBytes(BoundedBytes):
    """The bytes of one ELF file; access outside the file raises `ElfError`."""

    __slots__ = ()

    error = ElfError
    whole = "a whole ELF file"


ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_MIPS, EM_PPC64, EM_X86_64, EM_AARCH64, EM_AMDGPU = 8, 21, 62, 183, 224
PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR = 0, 1, 2, 3, 4, 6
PT_GNU_RELRO, PT_GNU_PROPERTY = 0x6474E552, 0x6474E553
PF_X, PF_W, PF_R = 1, 2, 4
E_MACHINE, E_PHOFF, E_SHOFF, E_FLAGS, E_PHNUM, E_SHNUM = 18, 32, 40, 48, 56, 60

SEGMENT_LAYOUT: Final = Struct("<IIQQQQQQ")
_HEADER_LAYOUT: Final = Struct("<4sBBBBB7xHHIQQQIHHHHHH")
HEADER_SIZE: Final = _HEADER_LAYOUT.size
_FIRST_SECTION_LAYOUT: Final = Struct("<IIQQQQIIQQ")
_CLASS_64, _LITTLE_ENDIAN, _CURRENT_VERSION = 2, 1, 1
_EXTENDED_COUNT = 0xFFFF
_ADDRESS_LIMIT = 1 << 64
_ZIP_REMEDY = "The file is a zip archive, such as a wheel. To correct run paths in a wheel, use 'rocwheel repair'."


class Header(msgspec.Struct, frozen=True):
    """The ELF header. Counts that are too large for their fields (``PN_XNUM``, ``SHN_XINDEX``) are already resolved."""

    type: int
    machine: int
    osabi: int
    abi_version: int
    flags: int
    entry: int
    segments_offset: int
    segment_count: int
    sections_offset: int
    section_count: int
    section_names_index: int


class Segment(msgspec.Struct, frozen=True):
    """One program header, with fields in the order of ``Elf64_Phdr``."""

    type: int
    flags: int
    offset: int
    address: int
    physical_address: int
    file_size: int
    memory_size: int
    alignment: int

    @property
    def end(self) -> int:
        """The file offset after the last byte."""
        return self.offset + self.file_size

    @property
    def memory_end(self) -> int:
        """The address after the last byte in memory, including the zero-filled part."""
        return self.address + self.memory_size

    def at(self, offset: int, address: int, size: int) -> Segment:
        """Return this program header with a different offset, address, and size."""
        return msgspec.structs.replace(
            self, offset=offset, address=address, physical_address=address, file_size=size, memory_size=size
        )

    def behind(self, offset: int) -> Segment:
        """Return the program header for the part of this segment that starts at the file offset ``offset``."""
        skipped = offset - self.offset
        return Segment(
            self.type,
            self.flags,
            offset,
            self.address + skipped,
            self.physical_address + skipped,
            self.file_size - skipped,
            self.memory_size - skipped,
            self.alignment,
        )

    def pack(self, name: str = "a new file") -> bytes:
        """Return the 56 bytes of this program header; raise `ElfError` if it has moved beyond the address space."""
        try:
            return SEGMENT_LAYOUT.pack(*msgspec.structs.astuple(self))
        except struct.error as e:
            found = f"a program header for offset {self.offset:#x} that ends beyond the address space"
            raise ElfError(name, found) from e


def read_header(source: ElfBytes) -> Header:
    """Read the ELF header; raise `ElfError` unless the file is 64-bit little-endian and contains all its tables."""
    _check_identification(source)
    fields = source.unpack(_HEADER_LAYOUT, 0, "the ELF header")
    _, _, _, _, osabi, abi_version, kind, machine, _, entry, phoff, shoff, flags, _, *tables = fields
    phentsize, phnum, shentsize, shnum, shstrndx = tables
    if shoff and (shnum == 0 or _EXTENDED_COUNT in {phnum, shstrndx}):
        first = source.unpack(_FIRST_SECTION_LAYOUT, shoff, "the first section header")
        phnum = first[7] if phnum == _EXTENDED_COUNT else phnum
        shnum = shnum or first[5]
        shstrndx = first[6] if shstrndx == _EXTENDED_COUNT else shstrndx
    shnum = shnum if shoff else 0
    phnum = phnum if phoff else 0
    _check_table(source, "program header", phoff, phnum, phentsize, SEGMENT_LAYOUT.size)
    _check_table(source, "section header", shoff, shnum, shentsize, _FIRST_SECTION_LAYOUT.size)
    return Header(kind, machine, osabi, abi_version, flags, entry, phoff, phnum, shoff, shnum, shstrndx)


def pack_header(kind: int, machine: int, *, entry: int = 0, segment_count: int) -> bytes:
    """Return the header of a file without sections, whose program headers follow immediately."""
    tables = HEADER_SIZE, SEGMENT_LAYOUT.size, segment_count, 0, 0, 0
    return _HEADER_LAYOUT.pack(
        ELF_MAGIC, _CLASS_64, _LITTLE_ENDIAN, _CURRENT_VERSION, 0, 0, kind, machine, _CURRENT_VERSION, entry,
        HEADER_SIZE, 0, 0, *tables,
    )  # fmt: skip


def _check_identification(source: ElfBytes) -> None:
    start = source.read(0, min(source.size, 16), "the start")
    if not start.startswith(ELF_MAGIC):
        raise ElfError(
            source.name,
            f"not an ELF file (the file begins with {start[:4]!r})" if start else "empty",
            expected=f"an ELF file, which begins with {ELF_MAGIC!r}",
            remedy=_ZIP_REMEDY if start.startswith(b"PK\3\4") else "",
        )
    source.require(0, _HEADER_LAYOUT.size, "the ELF header")
    expected = "a 64-bit little-endian ELF file"
    remedy = "Leave the file out: ROCm programs don't load such files."
    if start[4] != _CLASS_64:
        found = "a 32-bit ELF file" if start[4] == 1 else f"an ELF file with the unknown class {start[4]}"
        raise ElfError(source.name, found, expected=expected, remedy=remedy)
    if start[5] != _LITTLE_ENDIAN:
        found = "a big-endian ELF file" if start[5] == 2 else f"an ELF file with the unknown byte order {start[5]}"
        raise ElfError(source.name, found, expected=expected, remedy=remedy)
    if start[6] != _CURRENT_VERSION:
        raise ElfError(source.name, f"an ELF file with version {start[6]}", expected="version 1")


def _check_table(source: ElfBytes, entry: str, offset: int, number: int, entry_size: int, expected: int) -> None:
    if number and entry_size != expected:
        raise ElfError(source.name, f"a {entry} of {count(entry_size, 'byte')}", expected=count(expected, "byte"))
    source.require(offset if number else 0, number * expected, f"the {entry} table")


def read_segments(source: ElfBytes, header: Header) -> tuple[Segment, ...]:
    """Read the program headers. Callers check that the segments are inside the file (`mapping.require_contents`).

    Raises `ElfError` for a table outside the file, and for a segment that extends beyond the address space.
    """
    size = header.segment_count * SEGMENT_LAYOUT.size
    table = source.read(header.segments_offset if size else 0, size, "the program header table")
    segments = tuple(Segment(*fields) for fields in SEGMENT_LAYOUT.iter_unpack(table))
    for segment in segments:
        if segment.type == PT_LOAD and segment.memory_end > _ADDRESS_LIMIT:
            raise ElfError(source.name, f"a segment at {segment.address:#x} that ends beyond the address space")
    return segments


def load_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments that the loader maps (``PT_LOAD``)."""
    return [segment for segment in segments if segment.type == PT_LOAD]


SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = (
    0, 1, 2, 3, 4, 6, 7, 8, 11,
)  # fmt: skip
SHT_SYMTAB_SHNDX, SHT_RELR = 18, 19
SHT_GNU_VERDEF, SHT_GNU_VERNEED = 0x6FFFFFFD, 0x6FFFFFFE
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
SECTION_LAYOUT: Final = Struct("<IIQQQQIIQQ")


class ElfSection(msgspec.Struct, frozen=True):
    """One section header; sizes and offsets are in bytes, and ``link`` is an index into the section headers."""

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
        """Whether the section has bytes in the file. Only the type of a NULL section is meaningful."""
        return self.type not in {SHT_NULL, SHT_NOBITS}

    def pack(self) -> bytes:
        """Return the 64 bytes of this section header."""
        return SECTION_LAYOUT.pack(*msgspec.structs.astuple(self)[1:])


def read_sections(data: Buffer, *, name: str) -> tuple[ElfSection, ...]:
    """Read the section headers, including the first (null) header; return an empty tuple if there are no headers.

    Raises `ElfError` if the file isn't a usable ELF file or a section is outside the file; ``name`` identifies the file
    in errors.
    """
    with viewing(data) as view:
        source = ElfBytes(view, name)
        return read_section_table(source, read_header(source))


def read_section_table(source: ElfBytes, header: Header) -> tuple[ElfSection, ...]:
    """Read the section headers of a file whose header is known; raise `ElfError` for anything outside the file."""
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
            source.name,
            f"section names in section {header.section_names_index}, but only {count(len(rows), 'section')}",
        )
    start, length = rows[header.section_names_index][4:6]
    source.require(start, length, "the section names")
    return tuple(ElfSection(_section_name(source, start, length, row[0]), *row) for row in rows)


def _section_name(source: ElfBytes, start: int, length: int, offset: int) -> str:
    if offset == 0 or length == 0:
        return ""
    return source.string(start + min(offset, length), start + length, "a section name")


def is_detached_debug(sections: Iterable[ElfSection]) -> bool:
    """Return whether the file has only detached debug information for a program (``objcopy --only-keep-debug``).

    Such a file contains the program headers of its program, but of the data that the headers describe, it contains only
    the notes.
    """
    loaded = [section.type for section in sections if section.flags & SHF_ALLOC]
    return bool(loaded) and all(kind in {SHT_NOBITS, SHT_NOTE} for kind in loaded)
