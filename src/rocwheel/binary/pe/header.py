"""The headers of a Portable Executable of 64 bits (PE32+): DOS stub, COFF header, optional header, data directories.

The layouts follow Microsoft's "PE Format", sections "COFF File Header", "Optional Header" and "Optional Header Data
Directories".
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.kind import MZ_MAGIC, is_pe
from rocwheel.binary.pe.bytes import PeError

if TYPE_CHECKING:
    from rocwheel.binary.pe.bytes import PeBytes
    from rocwheel.core.reading import Data

__all__ = [
    "AMD64",
    "Directory",
    "DirectoryEntry",
    "Identity",
    "PeHeader",
    "bits_of_pe",
    "is_pe64",
    "machine_name",
    "read_header",
    "read_identity",
]

AMD64: Final = 0x8664
MACHINES: Final = {0x14C: "x86 (32 bits)", 0x1C4: "ARM (32 bits)", AMD64: "x86-64", 0xAA64: "ARM64", 0x200: "Itanium"}
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
"""The fields of the optional header of a file of 32 bits, up to its data directories."""


class Directory(IntEnum):
    """Places in the table of data directories."""

    EXPORTS = 0
    IMPORTS = 1
    RESOURCES = 2
    EXCEPTIONS = 3
    CERTIFICATES = 4
    """The only one whose place is an offset in the file: certificates are not loaded."""
    RELOCATIONS = 5
    DEBUG = 6
    TLS = 9
    BOUND_IMPORTS = 11
    DELAY_IMPORTS = 13
    RUNTIME = 14
    """Of .NET."""


_UNSIZED: Final = {Directory.EXPORTS, Directory.IMPORTS, Directory.DELAY_IMPORTS}
"""Tables that say themselves where they end: the loader goes by their address, even where the directory has size 0."""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A data directory: where a table is, and how many bytes it has."""

    address: int
    """Relative to the image base (RVA); for `Directory.CERTIFICATES` an offset in the file."""
    size: int


class PeHeader(msgspec.Struct, frozen=True):
    """What the headers say; sizes in bytes, addresses relative to the image base."""

    machine: int
    is_dll: bool
    is_linked: bool
    """Whether the linker found nothing missing (``IMAGE_FILE_EXECUTABLE_IMAGE``); the loader refuses others."""
    image_base: int
    entry: int
    section_alignment: int
    file_alignment: int
    image_size: int
    """The address space that the loader reserves (``SizeOfImage``)."""
    headers_size: int
    checksum: int
    subsystem: int
    """2 for windows, 3 for the console."""
    directories: tuple[DirectoryEntry, ...]
    optional_offset: int
    """Where the optional header is in the file, right behind the COFF header."""
    sections_offset: int
    section_count: int
    strings_offset: int
    """Where the names are that don't fit a section header, in the file; 0 for none."""

    @property
    def checksum_offset(self) -> int:
        """Where the checksum is in the file."""
        return self.optional_offset + _CHECKSUM_AT

    def directory(self, which: Directory) -> DirectoryEntry | None:
        """Return a data directory; none where it is missing or empty. Imports and exports need no size."""
        entry = self.directories[which] if which < len(self.directories) else None
        return entry if entry and entry.address and (entry.size or which in _UNSIZED) else None


class Identity(msgspec.Struct, frozen=True):
    """What every PE file tells, of 32 bits too: for which machine it is, and whether it is a DLL."""

    machine: int
    is_dll: bool
    is_64_bit: bool
    is_managed: bool = False
    """Whether it has code for .NET: a table of the common language runtime."""


def read_identity(source: PeBytes) -> Identity:
    """Read what a DLL or program of any machine is; raise `PeError` for a file that is neither, or is truncated."""
    start = _find_signature(source)
    fields = source.unpack(_COFF, start, "the COFF header")
    magic = int.from_bytes(source.read(start + _COFF.size, 2, "the optional header"), "little")
    is_managed = _has_runtime(source, start + _COFF.size, fields[-2], is_wide=magic == _PE32_PLUS)
    return Identity(fields[0], bool(fields[-1] & _IS_DLL), magic == _PE32_PLUS, is_managed)


def _has_runtime(source: PeBytes, at: int, size: int, *, is_wide: bool) -> bool:
    """Return whether the table of data directories, right behind the optional header's fields, names .NET's table."""
    table = _OPTIONAL.size if is_wide else _OPTIONAL32_SIZE
    entry = table + Directory.RUNTIME * _ENTRY.size
    if size < entry + _ENTRY.size:
        return False
    number = int.from_bytes(source.read(at + table - 4, 4, "the number of data directories"), "little")
    address, _ = source.unpack(_ENTRY, at + entry, "the data directories")
    return number > Directory.RUNTIME and address != 0


def is_pe64(data: Data) -> bool:
    """Return whether ``data`` is a PE file of 64 bits, for any machine."""
    return bits_of_pe(data) == 64


def bits_of_pe(data: Data) -> int | None:
    """Return 64 or 32 for a PE file of that class, by its headers; none for all else, such as programs of DOS."""
    if not is_pe(data) or len(data) < _PE_POINTER_AT + _PE_POINTER.size:
        return None
    (at,) = _PE_POINTER.unpack(bytes(data[_PE_POINTER_AT : _PE_POINTER_AT + _PE_POINTER.size]))
    if bytes(data[at : at + len(_SIGNATURE)]) != _SIGNATURE:
        return None
    magic_at = at + len(_SIGNATURE) + _COFF.size
    return {_PE32: 32, _PE32_PLUS: 64}.get(int.from_bytes(bytes(data[magic_at : magic_at + 2]), "little"))


def read_header(source: PeBytes) -> PeHeader:
    """Read the headers; raise `PeError` unless the file is a linked image of 64 bits and its headers lie inside it."""
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
        # A symbol has 18 bytes; the string table comes right after the last.
        strings_offset=symbols_at + 18 * symbols if symbols_at else 0,
    )


def _find_signature(source: PeBytes) -> int:
    """Return the offset behind the signature, where the COFF header is."""
    start = source.read(0, min(source.size, 2), "the start")
    if start != MZ_MAGIC:
        found = f"not a DLL or program of Windows (it begins with {start!r})" if start else "empty"
        raise PeError(source.name, found, expected=f"a PE file, which begins with {MZ_MAGIC!r}")
    (at,) = source.unpack(_PE_POINTER, _PE_POINTER_AT, "the place of the PE header")
    signature = source.read(at, len(_SIGNATURE), "the PE signature")
    if signature != _SIGNATURE:
        found = f"a program of DOS, or damaged: {signature!r} stands at {at:#x}"
        raise PeError(source.name, found, expected=f"the signature {_SIGNATURE!r} there")
    return int(at) + len(_SIGNATURE)


def _check_class(source: PeBytes, at: int, size: int, machine: int) -> None:
    expected, remedy = "a 64-bit PE file", "Leave it out: no ROCm program loads it."
    magic = int.from_bytes(source.read(at, 2, "the optional header"), "little")
    if magic == _PE32:
        raise PeError(source.name, f"a 32-bit PE file for {machine_name(machine)}", expected=expected, remedy=remedy)
    if magic != _PE32_PLUS:
        raise PeError(source.name, f"an optional header of the unknown kind {magic:#x}", expected=expected)
    if size < _OPTIONAL.size:
        raise PeError(source.name, f"an optional header of {size} bytes", expected=f"{_OPTIONAL.size} bytes or more")


def machine_name(machine: int) -> str:
    """Return what a machine type is called."""
    return MACHINES.get(machine, f"the unknown machine {machine:#x}")


def _read_directories(source: PeBytes, at: int, size: int, number: int) -> tuple[DirectoryEntry, ...]:
    # The loader looks at sixteen at most, whatever the number says.
    number = min(number, _MOST_DIRECTORIES, (size - _OPTIONAL.size) // _ENTRY.size)
    table = source.read(at + _OPTIONAL.size, number * _ENTRY.size, "the data directories")
    return tuple(DirectoryEntry(*entry) for entry in _ENTRY.iter_unpack(table))
