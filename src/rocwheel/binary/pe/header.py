"""Reads the headers and sections of a 64-bit Portable Executable (PE32+) with bounds checks.

The layouts follow Microsoft's "PE Format", sections "COFF File Header", "Optional Header", and "Optional Header Data
Directories".
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from functools import cached_property
from heapq import heappop, heappush
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rocwheel.binary.bounded_bytes import BoundedBytes
from rocwheel.binary.kind import MZ_MAGIC, is_pe
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data


class PeError(InputError):
    """An error for a DLL or program that is damaged, has an unsupported class, or lacks required data."""


class PeBytes(BoundedBytes):
    """The bytes of one DLL or program; access outside the file raises `PeError`."""

    __slots__ = ()

    error = PeError
    whole = "a whole PE file"


X86: Final = 0x14C
AMD64: Final = 0x8664
ARM64: Final = 0xAA64
MACHINES: Final = {X86: "x86 (32 bits)", 0x1C4: "ARM (32 bits)", AMD64: "x86-64", ARM64: "ARM64", 0x200: "Itanium"}
"""Names of machine types, for messages."""

_PE_POINTER: Final = Struct("<I")
_PE_POINTER_AT: Final = 0x3C
_SIGNATURE: Final = b"PE\0\0"
_COFF: Final = Struct("<HHIIIHH")
_OPTIONAL: Final = Struct("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII")
_ENTRY: Final = Struct("<II")
_PE32, _PE32_PLUS = 0x10B, 0x20B
_IS_EXECUTABLE, _IS_DLL = 0x0002, 0x2000
_MOST_DIRECTORIES = 16
_CHECKSUM_AT = 64
_OPTIONAL32_SIZE: Final = 96
"""The size of the fields in the 32-bit optional header, up to its data directories."""


class PeDirectory(IntEnum):
    """Positions in the table of data directories."""

    EXPORTS = 0
    IMPORTS = 1
    RESOURCES = 2
    EXCEPTIONS = 3
    CERTIFICATES = 4
    """The only directory whose position is a file offset: certificates aren't loaded."""
    RELOCATIONS = 5
    DEBUG = 6
    TLS = 9
    BOUND_IMPORTS = 11
    DELAY_IMPORTS = 13
    RUNTIME = 14
    """The .NET runtime header."""


_UNSIZED: Final = {PeDirectory.EXPORTS, PeDirectory.IMPORTS, PeDirectory.DELAY_IMPORTS}
"""Tables that record their own end. The loader uses their address even if the directory's size is 0."""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A data directory: a table's position, and its size in bytes."""

    address: int
    """The address relative to the image base (RVA); for `PeDirectory.CERTIFICATES`, a file offset."""
    size: int


class PeHeader(msgspec.Struct, frozen=True):
    """The content of the headers; sizes are in bytes, and addresses are relative to the image base."""

    machine: int
    is_dll: bool
    is_linked: bool
    """Whether the linker resolved all references (``IMAGE_FILE_EXECUTABLE_IMAGE``); the loader rejects other files."""
    image_base: int
    entry: int
    section_alignment: int
    file_alignment: int
    image_size: int
    """The size of the address space that the loader reserves (``SizeOfImage``)."""
    headers_size: int
    checksum: int
    subsystem: int
    """2 for the Windows GUI, 3 for the console."""
    directories: tuple[DirectoryEntry, ...]
    optional_offset: int
    """The file offset of the optional header, immediately after the COFF header."""
    sections_offset: int
    section_count: int
    strings_offset: int
    """The file offset of the names that are too long for a section header, or 0 if there are no such names."""

    @property
    def checksum_offset(self) -> int:
        """The file offset of the checksum."""
        return self.optional_offset + _CHECKSUM_AT

    def directory(self, which: PeDirectory) -> DirectoryEntry | None:
        """Return a data directory, or `None` if it is missing or empty; imports and exports don't require a size."""
        entry = self.directories[which] if which < len(self.directories) else None
        return entry if entry and entry.address and (entry.size or which in _UNSIZED) else None


class Identity(msgspec.Struct, frozen=True):
    """The identity of a 32-bit or 64-bit PE file: its machine, and whether it is a DLL."""

    machine: int
    is_dll: bool
    is_64_bit: bool
    is_managed: bool = False
    """Whether the file has .NET code, which needs a table for the common language runtime."""


def read_identity(source: PeBytes) -> Identity:
    """Read the identity of a DLL or program for any machine; raise `PeError` for other files and truncated files."""
    start = _find_signature(source)
    fields = source.unpack(_COFF, start, "the COFF header")
    magic = int.from_bytes(source.read(start + _COFF.size, 2, "the optional header"), "little")
    is_managed = _has_runtime(source, start + _COFF.size, fields[-2], is_wide=magic == _PE32_PLUS)
    return Identity(fields[0], bool(fields[-1] & _IS_DLL), magic == _PE32_PLUS, is_managed)


def _has_runtime(source: PeBytes, at: int, size: int, *, is_wide: bool) -> bool:
    """Return whether the data directories, which follow the fields of the optional header, include .NET's table."""
    table = _OPTIONAL.size if is_wide else _OPTIONAL32_SIZE
    entry = table + PeDirectory.RUNTIME * _ENTRY.size
    if size < entry + _ENTRY.size:
        return False
    number = int.from_bytes(source.read(at + table - 4, 4, "the number of data directories"), "little")
    address, _ = source.unpack(_ENTRY, at + entry, "the data directories")
    return number > PeDirectory.RUNTIME and address != 0


def is_pe64(data: Data) -> bool:
    """Return whether ``data`` is a 64-bit PE file for any machine."""
    return bits_of_pe(data) == 64


def bits_of_pe(data: Data) -> int | None:
    """Return 64 or 32 for a PE file, according to its headers, or `None` for other files, such as DOS programs."""
    if not is_pe(data) or len(data) < _PE_POINTER_AT + _PE_POINTER.size:
        return None
    (at,) = _PE_POINTER.unpack(bytes(data[_PE_POINTER_AT : _PE_POINTER_AT + _PE_POINTER.size]))
    if bytes(data[at : at + len(_SIGNATURE)]) != _SIGNATURE:
        return None
    magic_at = at + len(_SIGNATURE) + _COFF.size
    return {_PE32: 32, _PE32_PLUS: 64}.get(int.from_bytes(bytes(data[magic_at : magic_at + 2]), "little"))


def read_header(source: PeBytes) -> PeHeader:
    """Read the headers; raise `PeError` unless the file is a linked 64-bit image that contains its headers."""
    start = _find_signature(source)
    machine, sections, _, symbols_at, symbols, optional_size, traits = source.unpack(_COFF, start, "the COFF header")
    optional_at = start + _COFF.size
    _check_class(source, optional_at, optional_size, machine)
    fields = source.unpack(_OPTIONAL, optional_at, "the optional header")
    entry, image_base, section_alignment, file_alignment = fields[6], *fields[8:11]
    image_size, headers_size, checksum, subsystem = fields[18:22]
    return PeHeader(
        machine=machine,
        is_dll=bool(traits & _IS_DLL),
        is_linked=bool(traits & _IS_EXECUTABLE),
        image_base=image_base,
        entry=entry,
        section_alignment=section_alignment,
        file_alignment=file_alignment,
        image_size=image_size,
        headers_size=headers_size,
        checksum=checksum,
        subsystem=subsystem,
        directories=_read_directories(source, optional_at, optional_size, fields[-1]),
        optional_offset=optional_at,
        sections_offset=optional_at + optional_size,
        section_count=sections,
        # A symbol has 18 bytes; the string table follows the last symbol.
        strings_offset=symbols_at + 18 * symbols if symbols_at else 0,
    )


def _find_signature(source: PeBytes) -> int:
    """Return the offset after the signature, where the COFF header is."""
    start = source.read(0, min(source.size, 2), "the start")
    if start != MZ_MAGIC:
        found = f"not a Windows DLL or program (the file begins with {start!r})" if start else "empty"
        raise PeError(source.name, found, expected=f"a PE file, which begins with {MZ_MAGIC!r}")
    (at,) = source.unpack(_PE_POINTER, _PE_POINTER_AT, "the offset of the PE header")
    signature = source.read(at, len(_SIGNATURE), "the PE signature")
    if signature != _SIGNATURE:
        found = f"a DOS program or a damaged file, with {signature!r} at {at:#x}"
        raise PeError(source.name, found, expected=f"the signature {_SIGNATURE!r} there")
    return int(at) + len(_SIGNATURE)


def _check_class(source: PeBytes, at: int, size: int, machine: int) -> None:
    expected, remedy = "a 64-bit PE file", "Leave the file out: ROCm programs don't load such files."
    magic = int.from_bytes(source.read(at, 2, "the optional header"), "little")
    if magic == _PE32:
        raise PeError(source.name, f"a 32-bit PE file for {machine_name(machine)}", expected=expected, remedy=remedy)
    if magic != _PE32_PLUS:
        raise PeError(source.name, f"an optional header with the unknown magic number {magic:#x}", expected=expected)
    if size < _OPTIONAL.size:
        raise PeError(source.name, f"an optional header of {size} bytes", expected=f"at least {_OPTIONAL.size} bytes")


def machine_name(machine: int) -> str:
    """Return the name of a machine type."""
    return MACHINES.get(machine, f"the unknown machine {machine:#x}")


def _read_directories(source: PeBytes, at: int, size: int, number: int) -> tuple[DirectoryEntry, ...]:
    # The loader reads at most sixteen directories, regardless of the declared number.
    number = min(number, _MOST_DIRECTORIES, (size - _OPTIONAL.size) // _ENTRY.size)
    table = source.read(at + _OPTIONAL.size, number * _ENTRY.size, "the data directories")
    return tuple(DirectoryEntry(*entry) for entry in _ENTRY.iter_unpack(table))


SECTION_LAYOUT: Final = Struct("<8sIIIIIIHHI")
_SECTOR = 512
"""The loader rounds a section's file offset down to a multiple of this many bytes."""
_NAME_DIGITS = 7
_LONGEST_NAME = 1 << 12


class PeSection(msgspec.Struct, frozen=True):
    """A section. Sizes are in bytes, the address is relative to the image base, and the offset is in the file."""

    name: str
    """The name, such as ``.text``. Long names from GNU tools are in the string table. Non-ASCII bytes are escaped."""
    address: int
    memory_size: int
    offset: int
    file_size: int
    """The bytes in the file, rounded up to the file alignment. In memory, zeros fill the rest."""
    traits: int
    """``Characteristics``."""

    @property
    def end(self) -> int:
        """The file offset after the last byte."""
        return self.offset + self.file_size

    @property
    def loaded_size(self) -> int:
        """The number of bytes in the file that are loaded, without the padding up to the file alignment."""
        return min(self.memory_size or self.file_size, self.file_size)

    @property
    def memory_end(self) -> int:
        """The address after the last byte in memory."""
        return self.address + max(self.memory_size, 1)


class Image:
    """A file as the loader maps it into memory; addresses are relative to the image base."""

    def __init__(self, source: PeBytes, header: PeHeader, sections: tuple[PeSection, ...]) -> None:
        self.source = source
        self.header = header
        self.sections = sections

    def offset_of(self, address: int, what: str) -> tuple[int, int]:
        """Return the file offset of an address, and the end of the range of bytes that are loaded together with it.

        If sections overlap, the first section in the table takes precedence. Raises `PeError` if nothing from the file
        is loaded at the address.
        """
        starts, holders = self._places
        at = bisect_right(starts, address) - 1
        if section := holders[at] if at >= 0 else None:
            offset = section.offset - section.offset % _SECTOR
            return offset + address - section.address, offset + section.file_size
        if address < min(self.header.headers_size, self.source.size):
            return address, self.header.headers_size
        raise PeError(
            self.source.name,
            f"{what} would be at the address {address:#x}, where no section has bytes in the file",
            expected=self.source.whole,
            remedy="The file is truncated or damaged. Copy the file again, or rebuild it.",
        )

    @cached_property
    def _places(self) -> tuple[list[int], list[PeSection | None]]:
        """The ascending addresses at which a different section takes effect, with that section (`None` in gaps)."""
        places = list(_first_sections(self.sections))
        return [start for start, _ in places], [section for _, section in places]

    def unpack(self, layout: Struct, address: int, what: str) -> tuple[Any, ...]:
        """Return the fields of the structure at ``address``."""
        return layout.unpack(self.read(address, layout.size, what))

    def read(self, address: int, size: int, what: str) -> bytes:
        """Return a copy of a range; raise `PeError` if the range isn't inside one section."""
        offset, end = self.offset_of(address, what)
        if offset + size > end:
            raise PeError(
                self.source.name,
                f"{what} would have {size} bytes at {address:#x}, but its section has only {end - offset}",
            )
        return self.source.read(offset, size, what)

    def string(self, address: int, what: str) -> str:
        """Return the ASCII string from an address to its NUL byte; raise `PeError` for other text."""
        offset, end = self.offset_of(address, what)
        text = self.source.string_bytes(offset, min(end, self.source.size), what)
        if not text.isascii():
            raise PeError(self.source.name, f"{what} is {text!r}", expected="ASCII text")
        return text.decode("ascii")


def _first_sections(sections: Sequence[PeSection]) -> Iterator[tuple[int, PeSection | None]]:
    """Yield each address at which a different section becomes the first one with bytes in the file, and that section.

    This function needs n log n steps, because a header may declare 65535 sections, and tables can have a million
    addresses.
    """
    spans = [(one.address, one.address + one.file_size, number) for number, one in enumerate(sections) if one.file_size]
    waiting = sorted(spans, reverse=True)
    open_spans: list[tuple[int, int]] = []
    for address in sorted({edge for start, stop, _ in spans for edge in (start, stop)}):
        while waiting and waiting[-1][0] == address:
            _, stop, number = waiting.pop()
            heappush(open_spans, (number, stop))
        while open_spans and open_spans[0][1] <= address:
            heappop(open_spans)
        yield address, sections[open_spans[0][0]] if open_spans else None


def read_sections(source: PeBytes, header: PeHeader) -> tuple[PeSection, ...]:
    """Read the section table; raise `PeError` if a section would be outside the file."""
    size = header.section_count * SECTION_LAYOUT.size
    table = source.read(header.sections_offset, size, "the section table")
    sections = []
    for fields in SECTION_LAYOUT.iter_unpack(table):
        name, memory_size, address, file_size, offset, *_, traits = fields
        section = PeSection(
            section_name(source, header.strings_offset, name), address, memory_size, offset, file_size, traits
        )
        if file_size:
            source.require(offset - offset % _SECTOR, file_size, f"the section {section.name}")
        sections.append(section)
    return tuple(sections)


def section_name(source: PeBytes, strings_at: int, raw: bytes) -> str:
    """Return the name from an 8-byte field of a section header.

    Longer names are in the string table at ``strings_at``.
    """
    text = raw.rstrip(b"\0")
    digits = text[1:]
    if text.startswith(b"/") and digits.isdigit() and len(digits) <= _NAME_DIGITS and strings_at:
        at = strings_at + int(digits)
        text = source.string_bytes(at, min(at + _LONGEST_NAME, source.size), "the name of a section")
    return text.decode("ascii", "backslashreplace")


def open_image(source: PeBytes) -> Image:
    """Return a DLL or program with its headers and sections; raise `PeError` if the headers or sections are damaged."""
    header = read_header(source)
    return Image(source, header, read_sections(source, header))
