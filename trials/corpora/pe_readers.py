"""What rocwheel, pefile, LIEF and LLVM read in a DLL or program of Windows, each as the same facts."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import lief
import pefile

from rocwheel.binary.pe.facts import read_pe
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.binary.pe.linkage import ImportedDll

__all__ = ["Facts", "by_lief", "by_llvm", "by_pefile", "by_rocwheel"]

Facts = dict[str, Any]
"""A fact's name to its value; a reader leaves out what it doesn't tell."""

_Dlls = list[tuple[str, tuple[str, ...]]]
_EVERYTHING: Final = 1 << 20
_IS_DLL = 0x2000
_SYMBOL_SIZE = 18
_SECURITY = 4
lief.logging.disable()


def by_rocwheel(path: Path) -> Facts:
    """Return what rocwheel reads; raises `PeError` where it refuses the file."""
    with FileRange.whole(path).view() as data:
        pe = read_pe(data, name=str(path))
    exports, version, certificate = pe.exports, pe.version, pe.certificate
    return {
        "machine": pe.header.machine,
        "is a DLL": pe.is_dll,
        "image base": pe.header.image_base,
        "image size": pe.header.image_size,
        "entry": pe.header.entry,
        "subsystem": pe.header.subsystem,
        "checksum": pe.header.checksum,
        "sections": [(s.name, s.address, s.memory_size, s.offset, s.file_size, s.traits) for s in pe.sections],
        "imports": _as_pairs(pe.imports),
        "delayed imports": _as_pairs(pe.delay_imports),
        "name": exports.dll if exports else "",
        "exports": sorted(exports.names) if exports else [],
        "forwarders": sorted(exports.forwarders) if exports else [],
        "exported functions": exports.ordinal_count if exports else 0,
        "version": (version.file, version.product) if version else None,
        "certificates": (certificate.offset, certificate.size) if certificate else None,
    }


def _as_pairs(dlls: tuple[ImportedDll, ...]) -> _Dlls:
    return [(one.name, one.functions) for one in dlls]


def by_pefile(path: Path) -> Facts:
    """Return what pefile reads, without the bounds that it sets itself."""
    pefile.MAX_SYMBOL_NAME_LENGTH = pefile.MAX_IMPORT_NAME_LENGTH = pefile.MAX_IMPORT_SYMBOLS = _EVERYTHING
    pe = pefile.PE(str(path), fast_load=True, max_symbol_exports=_EVERYTHING)
    try:
        kinds = ("EXPORT", "IMPORT", "DELAY_IMPORT", "RESOURCE")
        pe.parse_data_directories([pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{kind}"] for kind in kinds])
        return _facts_of_pefile(pe)
    finally:
        pe.close()


def _facts_of_pefile(pe: pefile.PE) -> Facts:
    header, optional = pe.FILE_HEADER, pe.OPTIONAL_HEADER
    table = getattr(pe, "DIRECTORY_ENTRY_EXPORT", None)
    symbols = table.symbols if table else []
    named = [(one.name.decode(), one.forwarder and one.forwarder.decode()) for one in symbols if one.name]
    fixed = getattr(pe, "VS_FIXEDFILEINFO", None)
    signed = optional.DATA_DIRECTORY[_SECURITY]
    return {
        "machine": header.Machine,
        "is a DLL": bool(header.Characteristics & _IS_DLL),
        "image base": optional.ImageBase,
        "image size": optional.SizeOfImage,
        "entry": optional.AddressOfEntryPoint,
        "subsystem": optional.Subsystem,
        "checksum": optional.CheckSum,
        "sections": [
            (_section_name(pe, s.Name), s.VirtualAddress, s.Misc_VirtualSize, s.PointerToRawData, s.SizeOfRawData,
             s.Characteristics) for s in pe.sections
        ],
        "imports": _dlls_of_pefile(pe, "IMPORT"),
        "delayed imports": _dlls_of_pefile(pe, "DELAY_IMPORT"),
        "exports": sorted(name for name, _ in named),
        "forwarders": sorted((name, forwarder) for name, forwarder in named if forwarder),
        "version": _version_of_pefile(fixed[0]) if fixed else None,
        "certificates": (signed.VirtualAddress, signed.Size) if signed.VirtualAddress and signed.Size else None,
    }  # fmt: skip


def _section_name(pe: pefile.PE, raw: bytes) -> str:
    text = raw.rstrip(b"\0")
    start = pe.FILE_HEADER.PointerToSymbolTable
    if text[:1] == b"/" and text[1:].isdigit() and start:
        at = start + _SYMBOL_SIZE * pe.FILE_HEADER.NumberOfSymbols + int(text[1:])
        text = bytes(pe.__data__[at : pe.__data__.find(b"\0", at)])
    return text.decode("ascii", "backslashreplace")


def _dlls_of_pefile(pe: pefile.PE, kind: str) -> _Dlls:
    return [
        (one.dll.decode(), tuple(map(_function_of_pefile, one.imports)))
        for one in getattr(pe, f"DIRECTORY_ENTRY_{kind}", [])
    ]


def _function_of_pefile(entry: pefile.ImportData) -> str:
    # It also knows the names of some ordinals of Windows' own DLLs.
    return f"#{entry.ordinal}" if entry.import_by_ordinal or not entry.name else entry.name.decode()


def _version_of_pefile(fixed: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _version(fixed.FileVersionMS, fixed.FileVersionLS, fixed.ProductVersionMS, fixed.ProductVersionLS)


def _version(*halves: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = tuple(part for half in halves for part in (half >> 16, half & 0xFFFF))
    return numbers[:4], numbers[4:]


def by_lief(path: Path) -> Facts:
    """Return what LIEF reads."""
    pe = lief.PE.parse(str(path))
    if pe is None:
        return {}
    export = pe.get_export()
    entries = list(export.entries) if export else []
    named = [(str(one.name), _target(one)) for one in entries if one.name]
    return {
        "machine": int(pe.header.machine),
        "is a DLL": bool(int(pe.header.characteristics) & _IS_DLL),
        "image base": pe.optional_header.imagebase,
        "image size": pe.optional_header.sizeof_image,
        "entry": pe.optional_header.addressof_entrypoint,
        "subsystem": int(pe.optional_header.subsystem),
        "checksum": pe.optional_header.checksum,
        "sections": [
            (s.coff_string.string if s.coff_string else s.name, s.virtual_address, s.virtual_size, s.pointerto_raw_data,
             s.sizeof_raw_data, s.characteristics) for s in pe.sections
        ],
        "imports": [(one.name, tuple(map(_function_of_lief, one.entries))) for one in pe.imports],
        "delayed imports": [(one.name, tuple(map(_function_of_lief, one.entries))) for one in pe.delay_imports],
        "name": export.name if export else "",
        "exports": sorted(name for name, _ in named),
        "forwarders": sorted((name, target) for name, target in named if target),
        "version": _version_of_lief(pe),
    }  # fmt: skip


def _target(entry: lief.PE.ExportEntry) -> str:
    where = entry.forward_information
    return f"{where.library}.{where.function}" if entry.is_forwarded else ""


def _function_of_lief(entry: lief.PE.ImportEntry | lief.PE.DelayImportEntry) -> str:
    return f"#{entry.ordinal}" if entry.is_ordinal else str(entry.name)


def _version_of_lief(pe: lief.PE.Binary) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    manager = pe.resources_manager
    versions = manager.version if isinstance(manager, lief.PE.ResourcesManager) else []
    fixed = versions[0].file_info if versions else None
    if fixed is None:
        return None
    return _version(fixed.file_version_ms, fixed.file_version_ls, fixed.product_version_ms, fixed.product_version_ls)


_HEADER_FIELDS: Final = {
    "machine": r"^  Machine: .*\((0x[0-9A-F]+)\)",
    "image base": r"^  ImageBase: (\w+)",
    "image size": r"^  SizeOfImage: (\w+)",
    "entry": r"^  AddressOfEntryPoint: (\w+)",
    "subsystem": r"^  Subsystem: .*\((0x[0-9A-F]+)\)",
    "checksum": r"^  CheckSum: (\w+)",
}
_SECTION_FIELDS: Final = ("VirtualAddress", "VirtualSize", "PointerToRawData", "RawDataSize")


def by_llvm(path: Path, tool: str) -> Facts:
    """Return what llvm-readobj prints."""
    wanted = ("--file-headers", "--sections", "--coff-imports", "--coff-exports")
    done = subprocess.run([tool, *wanted, str(path)], capture_output=True, check=True)
    text = done.stdout.decode(errors="backslashreplace")
    parts = re.findall(r"^(DelayImport|Import|Export) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    exported = list(_exports_of_llvm(body for kind, body in parts if kind == "Export"))
    fields = {name: int(_one(pattern, text), 0) for name, pattern in _HEADER_FIELDS.items()}
    return fields | {
        "is a DLL": "    IMAGE_FILE_DLL (0x2000)\n" in text,
        "sections": [
            _section_of_llvm(body) for body in re.findall(r"^  Section \{\n(.*?)^  \}", text, re.DOTALL | re.MULTILINE)
        ],
        "imports": [_dll_of_llvm(body) for kind, body in parts if kind == "Import"],
        "delayed imports": [_dll_of_llvm(body) for kind, body in parts if kind == "DelayImport"],
        "exports": sorted(name for name, _ in exported),
        "forwarders": sorted((name, target) for name, target in exported if target),
    }


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "-1"


def _section_of_llvm(body: str) -> tuple[str | int, ...]:
    name = _one(r"^    Name: (.*?) ?\((?:[0-9A-F]{2} ?){8}\)$", body)
    numbers = (int(_one(rf"^    {field}: (\w+)$", body), 0) for field in _SECTION_FIELDS)
    return name, *numbers, int(_one(r"Characteristics \[ \((0x[0-9A-F]+)\)", body), 16)


def _dll_of_llvm(body: str) -> tuple[str, tuple[str, ...]]:
    functions = re.findall(r"^\s+Symbol: (.*?) ?\((\d+)\)$", body, re.MULTILINE)
    return _one(r"^  Name: (.*)$", body), tuple(name or f"#{number}" for name, number in functions)


def _exports_of_llvm(bodies: Iterator[str]) -> Iterator[tuple[str, str]]:
    for body in bodies:
        name = re.search(r"^  Name: (.+)$", body, re.MULTILINE)
        target = re.search(r"^  ForwardedTo: (.*)$", body, re.MULTILINE)
        if name:
            yield name[1], target[1] if target else ""
