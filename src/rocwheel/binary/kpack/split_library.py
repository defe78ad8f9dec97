"""Split libraries: host files whose wrappers point to markers, and so to code in kpack archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.elf_code import as_code_section
from rocwheel.binary.bundles.fat_binary import read_fat_binary
from rocwheel.binary.bundles.pe_code import PE_MARKER_NAMES, find_pe_section
from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.header import read_header
from rocwheel.binary.elf.sections import read_section_table
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.marker import MARKER_SECTION, Marker, read_marker
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from rocwheel.binary.bundles.wrappers import CodeSection, Wrapper
    from rocwheel.core.reading import Data

__all__ = ["SplitLibrary", "SplitUnit", "read_split_library"]


class SplitUnit(msgspec.Struct, frozen=True):
    """A wrapper of a split library: where it is in the file, and what a runtime looks up for it."""

    offset: int
    index: int
    marker: Marker


class SplitLibrary(msgspec.Struct, frozen=True):
    """A host file whose code is in archives, wrapper by wrapper; of ``units``, those of one bundle are equal."""

    name: str
    units: tuple[SplitUnit, ...]


def read_split_library(data: Data, *, name: str) -> SplitLibrary | None:
    """Return what the wrappers of ``data`` say of archives; none for a file that has all its code, or none at all.

    A file of debug information has wrappers' sections without bytes, and so none. Raises `KpackError` for wrappers of
    both kinds, and for pointers and markers that no runtime can use; `ElfError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or not any(wrapper.is_kpack for wrapper in fat.wrappers):
        return None
    rest = [wrapper for wrapper in fat.wrappers if not wrapper.is_kpack]
    if rest:
        found = f"{count(len(rest), 'wrapper')} of a bundle beside {len(fat.wrappers) - len(rest)} of a kpack archive"
        raise KpackError(Place(name, rest[0].offset), found, expected="wrappers of one kind")
    section = _find_section(data, name)
    markers: dict[int, Marker] = {}
    for wrapper in fat.wrappers:
        if wrapper.pointer.target not in markers:
            markers[wrapper.pointer.target] = _read_marker(data, wrapper, section, name)
    units = (SplitUnit(one.offset, one.index, markers[one.pointer.target]) for one in fat.wrappers)
    return SplitLibrary(name, tuple(units))


def _find_section(data: Data, name: str) -> CodeSection:
    section = find_pe_section(data, PE_MARKER_NAMES, name=name) if is_pe64(data) else _find_elf_section(data, name)
    if section is None:
        shown = ".kpackrf" if is_pe64(data) else MARKER_SECTION
        raise KpackError(Place(name), f"wrappers of a kpack archive, but no {shown} section")
    return section


def _find_elf_section(data: Data, name: str) -> CodeSection | None:
    source = ElfBytes(data, name)
    for section in read_section_table(source, read_header(source)):
        if section.name == MARKER_SECTION and section.has_bytes:
            source.require(section.offset, section.size, MARKER_SECTION)
            return as_code_section(section)
    return None


def _read_marker(data: Data, wrapper: Wrapper, section: CodeSection, name: str) -> Marker:
    start = wrapper.pointer.target - section.address
    if not 0 <= start < section.size:
        found = f"a wrapper that points to {wrapper.leads_to}"
        expected = f"one in {section.name}, {count(section.size, 'byte')} from {section.address:#x}"
        raise KpackError(Place(name, wrapper.offset), found, expected=expected)
    place = Place(name, section.offset + start)
    return read_marker(data[section.offset + start : section.offset + section.size], place=place)
