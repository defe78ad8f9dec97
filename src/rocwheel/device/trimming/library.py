"""A shared library that may be trimmed: the conditions that hold whatever becomes of its bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import FatBinary, elf_code_section, read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.elf.dynamic import is_program_only, read_dynamic
from rocwheel.binary.elf.header import (
    ET_DYN,
    ET_EXEC,
    PT_INTERP,
    SECTION_LAYOUT,
    SEGMENT_LAYOUT,
    ElfBytes,
    Header,
    Section,
    Segment,
    load_segments,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.elf.mapping import realigned, require_loadable
from rocwheel.binary.elf.relocations import Pointer, iter_addresses
from rocwheel.binary.kind import is_ar_archive, is_bundle, is_coff_object, is_thin_archive
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError
from rocwheel.device.trimming.image import read_fat_image
from rocwheel.device.trimming.packing import PAGE
from rocwheel.device.trimming.segment_cut import cut_segment
from rocwheel.device.trimming.static_library import (
    is_object_file,
    require_trimmable_archive,
    require_trimmable_object,
)

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = ["FatLibrary", "is_program", "read_fat_library", "read_linked_file", "require_trimmable"]


class FatLibrary(msgspec.Struct, frozen=True):
    """A shared library or a program with device code, as it is."""

    fat: FatBinary
    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    section: Section
    """``.hip_fatbin``."""
    holder: Segment
    """The segment that holds it."""
    addresses: tuple[Pointer, ...]
    """The addresses in that section that symbols and relocations hold."""

    @property
    def start(self) -> int:
        """File offset of the section."""
        return self.section.offset

    @property
    def stop(self) -> int:
        """File offset after the section."""
        return self.start + self.section.size

    @property
    def unit(self) -> int:
        """What file offsets may change by a multiple of, so that pages of memory remain pages of the file."""
        return max([PAGE, *(segment.alignment for segment in load_segments(self.segments))])


def require_trimmable(data: Data, *, name: str) -> None:
    """Check, before any work on its bundles, that nothing about the file itself keeps it from being trimmed.

    Raises `InputError` as `read_fat_library` does, and `NotTrimmableError` when no program header is left for what
    follows the device code; for object files and static libraries, as `plan_object_trim` does.
    """
    fat = read_fat_binary(data, name=name)
    if is_pe64(data) and fat is not None and not fat.is_kpacked:
        read_fat_image(data, fat)
        return
    if is_ar_archive(data):
        require_trimmable_archive(data, name=name)
        return
    if fat is not None and is_object_file(data, name=name):
        require_trimmable_object(data, fat)
        return
    library = read_fat_library(data, name=name)
    cut_segment((library.segments, library.sections), library.holder, (library.start, library.stop), name=name)


def read_fat_library(data: Data, *, name: str) -> FatLibrary:
    """Read the shared library ``data``.

    Raises `NotTrimmableError` for programs, static ones included, for object files, and when the device code shares its
    place in the file; another `InputError` for a file that is not a library with device code, and for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or fat.is_kpacked:
        raise InputError(
            name, _kind(data), expected="a shared library with .hip_fatbin: only such a library can be trimmed"
        )
    if is_coff_object(data):
        raise NotTrimmableError(Place(name), "an object file", expected="a linked file")
    source = ElfBytes(data, name)
    header = read_header(source)
    if header.type != ET_DYN or is_program(source, header):
        raise NotTrimmableError(Place(name), "a program or an object file", expected="a shared library")
    return read_linked_file(data, fat)


def read_linked_file(data: Data, fat: FatBinary) -> FatLibrary:
    """Read what surrounds the device code ``fat`` of the shared library or program ``data``.

    Raises `NotTrimmableError` when the device code shares its place in the file, and `ElfError` for damaged files.
    """
    name = fat.name
    source = ElfBytes(data, name)
    header = read_header(source)
    segments = read_segments(source, header)
    require_loadable(source, header, segments)
    is_only_program = is_program_only(header.type, segments, read_dynamic(source, segments))
    segments = realigned(segments, is_program=is_only_program)
    start, stop = fat.section.offset, fat.section.offset + fat.section.size
    holder = next((s for s in load_segments(segments) if s.offset <= start and stop <= s.end), None)
    if holder is None:
        raise NotTrimmableError(Place(name), ".hip_fatbin outside of every loaded segment", expected="it inside one")
    sections = read_section_table(source, header)
    section = elf_code_section(sections)
    assert section is not None, "that is where the code was found"
    addresses = tuple(iter_addresses(source, header, segments, sections, section))
    library = FatLibrary(fat, header, segments, sections, section, holder, addresses)
    _require_apart(library)
    return library


def _kind(data: Data) -> str:
    if is_ar_archive(data):
        return "a static library"
    if is_thin_archive(data):
        return "a thin archive"
    return "a file of bundles" if is_bundle(data) else "not a fat binary"


def is_program(source: ElfBytes, header: Header) -> bool:
    """Return whether a file is a program; static ones may be position independent and have no interpreter."""
    segments = read_segments(source, header)
    dynamic = read_dynamic(source, segments)
    is_pie = dynamic is not None and dynamic.is_pie
    return header.type == ET_EXEC or is_pie or any(segment.type == PT_INTERP for segment in segments)


def _require_apart(library: FatLibrary) -> None:
    """Refuse a file in which something else lies in ``.hip_fatbin``: it would be lost."""
    header, section = library.header, library.section
    places = [
        (header.segments_offset, header.segment_count * SEGMENT_LAYOUT.size),
        (header.sections_offset, header.section_count * SECTION_LAYOUT.size),
        *((s.offset, s.file_size) for s in library.segments if s != library.holder),
        *((s.offset, s.size) for s in library.sections if s.has_bytes and s != section),
    ]
    if any(size and start < library.stop and start + size > library.start for start, size in places):
        place = Place(library.fat.name, library.start)
        raise NotTrimmableError(place, "something else in .hip_fatbin", expected="only device code")
