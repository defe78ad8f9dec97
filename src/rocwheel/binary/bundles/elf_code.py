"""Device code in ELF files: ``.hip_fatbin``, found through the wrappers in ``.hipFatBinSegment``.

The pointer of a wrapper is right only after relocation: linkers may leave zeros in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.wrappers import POINTER_OFFSET, CodeSection, Wrapper, read_wrapper, wrapper_starts
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.header import read_header
from rocwheel.binary.elf.relocations import resolve_pointers
from rocwheel.binary.elf.sections import SHT_NOBITS, SHT_NULL, Section, read_section_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.header import Header
    from rocwheel.core.reading import Data

__all__ = ["as_code_section", "elf_code_section", "find_elf_code"]

_BUNDLES = ".hip_fatbin"
_WRAPPERS = ".hipFatBinSegment"


def find_elf_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the section of device code of a 64-bit ELF file, and its wrappers; none for a file without the former.

    Raises `ElfError` for damaged files, and `DeviceCodeError` for wrappers of an unknown kind.
    """
    source = ElfBytes(data, name)
    header = read_header(source)
    sections = read_section_table(source, header)
    code = elf_code_section(sections)
    if code is None:
        return None
    holder = _last_named(sections, _WRAPPERS)
    wrappers = _read_wrappers(source, header, sections, holder) if holder and holder.has_bytes else ()
    return as_code_section(code), wrappers


def elf_code_section(sections: Iterable[Section]) -> Section | None:
    """Return the section that device code is in: the last of the name, if there are several."""
    return _last_named(sections, _BUNDLES)


def as_code_section(section: Section) -> CodeSection:
    """Return what is of use about a section of device code or markers, as for files of any format."""
    return CodeSection(section.name, section.address, section.offset, section.size, section.type == SHT_NOBITS)


def _last_named(sections: Iterable[Section], name: str) -> Section | None:
    return {section.name: section for section in sections if section.type != SHT_NULL}.get(name)


def _read_wrappers(
    source: ElfBytes, header: Header, sections: tuple[Section, ...], holder: Section
) -> tuple[Wrapper, ...]:
    starts = wrapper_starts(holder.size)
    pointers = resolve_pointers(source, header, sections, holder, [start + POINTER_OFFSET for start in starts])
    return tuple(read_wrapper(source, holder.offset + start, pointers[start + POINTER_OFFSET]) for start in starts)
