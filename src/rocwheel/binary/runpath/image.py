"""The facts of an ELF file that are needed to change its run path, checked more strictly than for reading alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.dynamic import (
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    ENTRY_LAYOUT,
    DynamicFile,
    DynamicTable,
    RunpathTag,
    StringTable,
    counting_tag,
    names_tables,
    read_dynamic,
    read_string_table,
)
from rocwheel.binary.elf.header import (
    EM_AMDGPU,
    EM_MIPS,
    ET_DYN,
    ET_EXEC,
    HEADER_SIZE,
    PT_DYNAMIC,
    PT_INTERP,
    SEGMENT_LAYOUT,
    Header,
    Segment,
    read_header,
    read_segments,
)
from rocwheel.binary.elf.mapping import require_loadable
from rocwheel.binary.elf.patch import require_apart
from rocwheel.binary.elf.sections import (
    SECTION_LAYOUT,
    SHF_ALLOC,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_STRTAB,
    SHT_SYMTAB,
    Section,
    is_detached_debug,
    read_section_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.elf.bytes import ElfBytes

__all__ = ["Image", "read_image"]

_SINGLE = {SHT_DYNAMIC: "dynamic sections", SHT_SYMTAB: "symbol tables", SHT_DYNSYM: "tables of dynamic symbols"}
_MOST_OF_A_KIND = 4
_LOADERS = ("ld-linux", "ld64.so", "ld.so")


class Image(msgspec.Struct, frozen=True):
    """The tables of one dynamically linked ELF file."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    dynamic: DynamicTable
    strings: StringTable
    strings_section: int | None
    """Index of the section that holds the string table; none in a file without section headers."""

    def dynamic_file(self, source: ElfBytes) -> DynamicFile:
        """Return what the readers of symbols and versions take; ``source`` are the bytes that this was read from."""
        return DynamicFile(source, self.segments, self.dynamic, self.strings)

    @property
    def run_path_offset(self) -> int | None:
        """Where in the string table the present run path begins; none when there is none or an empty one."""
        rpath, runpath = self.dynamic.value(DT_RPATH), self.dynamic.value(DT_RUNPATH)
        return (rpath if counting_tag(rpath, runpath) is RunpathTag.RPATH else runpath) or None

    @property
    def starts_as_program(self) -> bool:
        """Whether a kernel may start the file, and then looks for its program headers in memory."""
        return self.header.type == ET_EXEC or self.dynamic.is_pie or self._has_interpreter

    @property
    def is_static(self) -> bool:
        """Whether it is a program that no loader looks at: a static PIE, which relocates itself."""
        return self.starts_as_program and not self._has_interpreter and self.dynamic.value(DT_NEEDED) is None

    @property
    def _has_interpreter(self) -> bool:
        return any(segment.type == PT_INTERP for segment in self.segments)


def read_image(source: ElfBytes) -> Image:
    """Read and check the tables; raise `ElfError` for a file that can't have a run path, or that contradicts itself."""
    header = read_header(source)
    segments = read_segments(source, header)
    sections = read_section_table(source, header)
    _check_kind(source, header, segments, sections)
    _check_tables(source, sections)
    require_loadable(source, header, segments)
    dynamic = _read_dynamic(source, segments)
    strings = read_string_table(source, segments, dynamic)
    _check_loader(source, dynamic, strings)
    image = Image(header, segments, sections, dynamic, strings, _find_strings_section(sections, strings))
    if (image.run_path_offset or 0) >= strings.size:
        raise ElfError(source.name, "a run path that begins outside the dynamic string table")
    _check_apart(source, image)
    return image


def _read_dynamic(source: ElfBytes, segments: tuple[Segment, ...]) -> DynamicTable:
    """Return the dynamic section; raise `ElfError` where there is none."""
    dynamic = read_dynamic(source, segments)
    if dynamic is None:
        raise _no_dynamic_section(source)
    return dynamic


def _check_apart(source: ElfBytes, image: Image) -> None:
    """Refuse tables that lie in each other: changing one would damage the other."""
    header, entries = image.header, image.dynamic.entries
    ranges = [
        (0, HEADER_SIZE),
        (header.segments_offset, header.segment_count * SEGMENT_LAYOUT.size),
        (header.sections_offset, header.section_count * SECTION_LAYOUT.size),
        (image.dynamic.offset, (len(entries) + 1) * ENTRY_LAYOUT.size),
        (image.strings.offset, image.strings.size),
    ]
    require_apart(sorted((offset, offset + size) for offset, size in ranges if size), name=source.name)


def _check_kind(source: ElfBytes, header: Header, segments: Sequence[Segment], sections: Sequence[Section]) -> None:
    if header.machine == EM_AMDGPU:
        raise ElfError(source.name, "an AMD GPU code object, which no run path applies to", remedy="Leave it as it is.")
    if header.machine == EM_MIPS:
        raise ElfError(
            source.name,
            "a MIPS file, whose dynamic section can't be changed in place",
            remedy="Link it with the run path that it needs.",
        )
    if header.type not in {ET_EXEC, ET_DYN} or not any(segment.type == PT_DYNAMIC for segment in segments):
        raise _no_dynamic_section(source)
    if is_detached_debug(sections) and not names_tables(source, segments):
        raise ElfError(source.name, "debug information split off a program", expected="the program itself")


def _check_tables(source: ElfBytes, sections: Sequence[Section]) -> None:
    """Refuse many sections of a kind of which the gABI allows one: all symbols are searched for each dynamic one."""
    for kind, what in _SINGLE.items():
        if (number := sum(section.type == kind for section in sections)) > _MOST_OF_A_KIND:
            raise ElfError(source.name, f"{number} {what}", expected="one, as in every file that is linked")


def _check_loader(source: ElfBytes, dynamic: DynamicTable, strings: StringTable) -> None:
    """Refuse the loader of glibc, which asserts that it has no run path and else starts no program."""
    offset = dynamic.value(DT_SONAME)
    if offset is not None and strings.string(source, offset, "the SONAME").startswith(_LOADERS):
        raise ElfError(
            source.name, "the dynamic loader itself, which no run path applies to", remedy="Leave it as it is."
        )


def _no_dynamic_section(source: ElfBytes) -> ElfError:
    return ElfError(
        source.name,
        "no dynamic section, and so no place for a run path",
        expected="a shared library or a dynamically linked program",
        remedy="Static programs and object files search for no libraries: leave it as it is.",
    )


def _find_strings_section(sections: Sequence[Section], strings: StringTable) -> int | None:
    for index, section in enumerate(sections):
        is_loaded = section.type == SHT_STRTAB and section.flags & SHF_ALLOC
        if is_loaded and (section.address, section.offset) == (strings.address, strings.offset):
            return index
    return None
