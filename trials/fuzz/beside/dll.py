"""What pefile reads of a DLL or program of Windows, held against what rocwheel reads.

Both must agree on the headers of every file. On tables, pefile guesses more than the loader where sections overlap or
begin between pages, and gives up early, with a warning or an answer of none, on what looks hostile to it: tables are
held against each other where the sections lie one behind the other, and pefile had nothing to warn of.
"""

from __future__ import annotations

import struct
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import pefile

from rocwheel.binary.pe.header import PeDirectory
from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.pe.facts import DebugEntry, Pe
    from rocwheel.binary.pe.header import PeHeader
    from rocwheel.binary.pe.linkage import ImportedDll

__all__ = ["compare_with_pefile"]

_REFUSALS = (pefile.PEFormatError, AttributeError, IndexError, TypeError, ValueError, struct.error, OverflowError)
"""What pefile raises for damaged files, on purpose or not."""
_PAGE, _SECTOR, _SYMBOL, _SIGNATURE = 0x1000, 0x200, 18, 0xFEEF04BD
_LONGEST = min(pefile.MAX_DLL_LENGTH, pefile.MAX_IMPORT_NAME_LENGTH, pefile.MAX_SYMBOL_NAME_LENGTH)
"""Bytes after which pefile cuts names off."""
_IS_DLL, _IS_LINKED = 0x2000, 0x0002
_KINDS = {
    PeDirectory.EXPORTS: "EXPORT",
    PeDirectory.IMPORTS: "IMPORT",
    PeDirectory.RESOURCES: "RESOURCE",
    PeDirectory.DEBUG: "DEBUG",
    PeDirectory.DELAY_IMPORTS: "DELAY_IMPORT",
}
"""What pefile calls the tables."""


def compare_with_pefile(data: bytes, found: Pe, debug: Sequence[DebugEntry] | None) -> None:
    """Require that pefile, where it can read the file, has the same answers."""
    try:
        other = pefile.PE(data=data, fast_load=True)
    except _REFUSALS:
        return
    _compare_headers(found.header, other)
    _compare_sections(found, other)
    if not _is_plain(found, other):
        return
    _compare_imports(found.imports, other, PeDirectory.IMPORTS)
    _compare_imports(found.delay_imports, other, PeDirectory.DELAY_IMPORTS)
    _compare_exports(found, other)
    _compare_version(found, other)
    if debug is not None:
        _compare_debug(debug, other)


def _same(what: str, own: object, theirs: object) -> None:
    require(own == theirs, f"{what}: {own}, pefile has {theirs}")


def _compare_headers(header: PeHeader, other: Any) -> None:
    coff, optional = other.FILE_HEADER, other.OPTIONAL_HEADER
    symbols = coff.PointerToSymbolTable
    theirs = {
        "machine": coff.Machine,
        "is_dll": bool(coff.Characteristics & _IS_DLL),
        "is_linked": bool(coff.Characteristics & _IS_LINKED),
        "image_base": optional.ImageBase,
        "entry": optional.AddressOfEntryPoint,
        "section_alignment": optional.SectionAlignment,
        "file_alignment": optional.FileAlignment,
        "image_size": optional.SizeOfImage,
        "headers_size": optional.SizeOfHeaders,
        "checksum": optional.CheckSum,
        "subsystem": optional.Subsystem,
        "optional_offset": optional.get_file_offset(),
        "sections_offset": optional.get_file_offset() + coff.SizeOfOptionalHeader,
        "section_count": coff.NumberOfSections,
        "strings_offset": symbols + _SYMBOL * coff.NumberOfSymbols if symbols else 0,
    }
    _same("headers", {field: getattr(header, field) for field in theirs}, theirs)
    # Of directories, pefile ignores the highest bit of the number, and goes on behind the end of the header.
    entries = [(one.VirtualAddress, one.Size) for one in optional.DATA_DIRECTORY]
    own = [(one.address, one.size) for one in header.directories]
    _same("data directories", own[: len(entries)], entries[: len(own)])


def _compare_sections(found: Pe, other: Any) -> None:
    # It stops at a header of zeros, at three suspicious values and behind 2048 sections, and sorts what it has.
    if len(other.sections) < len(found.sections):
        return
    own = [(one.name, one.address, one.memory_size, one.offset, one.file_size, one.traits) for one in found.sections]
    theirs = [
        (_section_name(other, one.Name), one.VirtualAddress, one.Misc_VirtualSize, one.PointerToRawData,
         one.SizeOfRawData, one.Characteristics) for one in other.sections
    ]  # fmt: skip
    _same("sections", sorted(own), sorted(theirs))
    if entry := found.certificate:
        directory = other.OPTIONAL_HEADER.DATA_DIRECTORY[PeDirectory.CERTIFICATES]
        _same("certificates", (entry.offset, entry.size), (directory.VirtualAddress, directory.Size))


def _section_name(other: Any, raw: bytes) -> str:
    """Return the name of a section; pefile doesn't look up those that stand in the string table."""
    text, start = raw.rstrip(b"\0"), other.FILE_HEADER.PointerToSymbolTable
    if text[:1] == b"/" and text[1:].isdigit() and start:
        at = start + _SYMBOL * other.FILE_HEADER.NumberOfSymbols + int(text[1:])
        text = other.__data__[at : other.__data__.find(b"\0", at)]
    return text.decode("ascii", "backslashreplace")


def _is_plain(found: Pe, other: Any) -> bool:
    """Return whether the sections lie one behind the other, each at a page and a sector, and pefile has them all."""
    header, sections = found.header, found.sections
    return (
        len(other.sections) == len(sections)
        and len(other.OPTIONAL_HEADER.DATA_DIRECTORY) == len(header.directories)
        and header.section_alignment >= _PAGE
        and all(not one.address % header.section_alignment and not one.offset % _SECTOR for one in sections)
        and all(one.address + max(one.memory_size, one.file_size) <= two.address for one, two in pairwise(sections))
        and all(one.address >= header.headers_size for one in sections[:1])
    )


def _read_table(other: Any, which: PeDirectory) -> Any:
    """Return a table as pefile reads it; none where there is none, or pefile warns of something in it."""
    warnings = len(other.get_warnings())
    try:
        other.parse_data_directories([pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{_KINDS[which]}"]])
    except _REFUSALS:
        return None
    table = getattr(other, f"DIRECTORY_ENTRY_{_KINDS[which]}", None)
    return table if len(other.get_warnings()) == warnings else None


def _compare_imports(own: Sequence[ImportedDll], other: Any, which: PeDirectory) -> None:
    if not all(map(_is_judged, own)):
        return
    table = _read_table(other, which)
    if table is None:
        return
    name_of = "szName" if which is PeDirectory.DELAY_IMPORTS else "Name"
    # The loader stops at a descriptor without a name, pefile at one of zeros only.
    dlls = list(takewhile(lambda dll: getattr(dll.struct, name_of), table))
    if all(_has_names(other, dll) for dll in dlls):
        theirs = [(dll.dll.decode(), tuple(map(_function, dll.imports))) for dll in dlls]
        _same(which.name.lower(), [(dll.name, dll.functions) for dll in own], theirs)


def _is_judged(dll: ImportedDll) -> bool:
    """Return whether pefile keeps all of a DLL's functions: each once, and of names that it takes for such."""
    names = [name for name in dll.functions if not name.startswith("#")]
    return (
        bool(dll.functions)
        and len(set(dll.functions)) == len(dll.functions)
        and "#0" not in dll.functions
        and pefile.is_valid_dos_filename(dll.name.encode())
        and all(name and pefile.is_valid_function_name(name.encode()) for name in names)
        and all(len(name) < _LONGEST for name in (dll.name, *names))
    )


def _has_names(other: Any, dll: Any) -> bool:
    """Return whether pefile read the table that names functions: where that looks wrong, it takes the addresses'."""
    fields = dll.struct
    names, addresses = (fields.pINT, 0) if hasattr(fields, "pINT") else (fields.OriginalFirstThunk, fields.FirstThunk)
    return bool(other.get_offset_from_rva(names or addresses) == dll.imports[0].struct_table.get_file_offset())


def _function(entry: Any) -> str:
    # It also knows the names of some ordinals of Windows' own DLLs.
    return f"#{entry.ordinal}" if entry.import_by_ordinal else str(entry.name.decode())


def _compare_exports(found: Pe, other: Any) -> None:
    table = _read_table(other, PeDirectory.EXPORTS) if found.exports else None
    if table is None or found.exports is None:
        return
    named = [(one.name.decode("latin-1"), one.forwarder) for one in table.symbols if one.name is not None]
    # It leaves out names without an address, which the linker doesn't make, and cuts long names off.
    if len(named) != table.struct.NumberOfNames or any(len(name) >= _LONGEST for name, _ in named):
        return
    forwarders = tuple((name, target.decode("latin-1")) for name, target in named if target is not None)
    theirs = tuple(name for name, _ in named), forwarders, len({one.ordinal for one in table.symbols})
    _same("exports", (found.exports.names, found.exports.forwarders, found.exports.ordinal_count), theirs)
    if table.struct.Name:
        _same("own name", found.exports.dll, table.name.decode("latin-1"))


def _compare_version(found: Pe, other: Any) -> None:
    if found.header.directory(PeDirectory.RESOURCES) is None:
        return
    _read_table(other, PeDirectory.RESOURCES)
    fixed = next(iter(getattr(other, "VS_FIXEDFILEINFO", [])), None)
    if fixed is None or fixed.Signature != _SIGNATURE or _is_named_like_a_version(other):
        return
    halves = (fixed.FileVersionMS, fixed.FileVersionLS, fixed.ProductVersionMS, fixed.ProductVersionLS)
    numbers = tuple(part for half in halves for part in (half >> 16, half & 0xFFFF))
    own = found.version and (*found.version.file, *found.version.product)
    _same("version", own, numbers)


def _is_named_like_a_version(other: Any) -> bool:
    """Return whether a kind of resources has a name whose place looks like an id: pefile takes it for one."""
    table = getattr(other, "DIRECTORY_ENTRY_RESOURCE", None)
    kinds = [one.struct for one in table.entries] if table else []
    return any(one.Name & 1 << 31 and one.Id == pefile.RESOURCE_TYPE["RT_VERSION"] for one in kinds)


def _compare_debug(own: Iterable[DebugEntry], other: Any) -> None:
    table = _read_table(other, PeDirectory.DEBUG)
    if table is not None:
        fields = [one.struct for one in table]
        theirs = [(one.SizeOfData, one.AddressOfRawData, one.PointerToRawData) for one in fields]
        _same("debug entries", [(one.size, one.address, one.offset) for one in own], theirs)
