"""Finds faults in the layout of a Portable Executable that cause Windows to reject the file or tools to distrust it.

The rules are from Microsoft's "PE Format", sections "Optional Header Windows-Specific Fields", "Section Table", and
"The Attribute Certificate Table". Linkers follow these rules. Tools that edit a finished file, for example, to remove
device code, may break these rules.
"""

from __future__ import annotations

import enum
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bounded_bytes import Buffer, viewing
from rocwheel.binary.pe.facts import (
    MOST_DEBUG_ENTRIES,
    checksum_of,
    debug_directory_fault,
    find_signature_fault,
    iter_debug_entries,
)
from rocwheel.binary.pe.header import Image, PeBytes, PeDirectory, PeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.pe.facts import DebugEntry, Pe
    from rocwheel.binary.pe.header import PeSection
    from rocwheel.core.reading import Data

_SECTION_HEADER = 40
_GLOBAL_POINTER = 8
_NOT_IN_SECTIONS = {PeDirectory.CERTIFICATES, PeDirectory.BOUND_IMPORTS, _GLOBAL_POINTER}
_LARGEST_IMAGE = 1 << 31
_MOST_SECTIONS = 96
"""The limit of the Windows loader, from "PE Format", section "COFF File Header"."""
_IS_CODE: Final = 0x2000_0020
"""``IMAGE_SCN_MEM_EXECUTE``, ``IMAGE_SCN_CNT_CODE``."""


class FaultKind(str, enum.Enum):
    """The kind of rule that a file violates."""

    LAYOUT = "layout"
    """The loader rejects the file, or reads a table outside the sections."""
    CHECKSUM = "checksum"
    SIGNATURE = "signature"
    SIZE = "size"


class LayoutFault(msgspec.Struct, frozen=True):
    """One fault; ``found`` completes the sentence "the file ..."."""

    kind: FaultKind
    found: str


def find_layout_faults(data: Buffer, pe: Pe, *, name: str, whole: bool = True) -> tuple[LayoutFault, ...]:
    """Return the layout faults of a file with the facts ``pe``; ``name`` identifies the file in errors.

    If ``whole``, compare a nonzero checksum and a signature with the contents of the entire file.
    """
    with viewing(data) as view:
        source = PeBytes(view, name)
        image = Image(source, pe.header, pe.sections)
        faults = [LayoutFault(FaultKind.LAYOUT, found) for found in find_loader_faults(image)]
        for what, size in (("takes", pe.header.image_size), ("is", source.size)):
            if size >= _LARGEST_IMAGE:
                found = f"{what} {size / 2**30:.1f} GiB, but Windows loads only files of less than 2 GiB"
                faults.append(LayoutFault(FaultKind.SIZE, found))
                break
        if whole and (found := _checksum_fault(view, pe)):
            faults.append(LayoutFault(FaultKind.CHECKSUM, found))
        if whole and pe.certificate and (found := find_signature_fault(source, pe.header, pe.certificate.offset)):
            faults.append(LayoutFault(FaultKind.SIGNATURE, found))
        return tuple(faults)


def find_loader_faults(image: Image) -> tuple[str, ...]:
    """Return why the loader rejects an image or reads a missing table; each text completes "the file ..."."""
    if (number := image.header.section_count) > _MOST_SECTIONS:
        return (f"has {number} sections, but Windows loads files with at most {_MOST_SECTIONS}",)
    memory = (*_header_faults(image), *_section_faults(image), *_entry_faults(image))
    return (*memory, *_file_faults(image), *_directory_faults(image), *_debug_faults(image))


def _header_faults(pe: Image) -> Iterator[str]:
    header = pe.header
    table_end = header.sections_offset + _SECTION_HEADER * header.section_count
    if table_end > header.headers_size:
        yield f"has a section table up to {table_end:#x}, but headers of only {header.headers_size:#x} bytes"
    for what, alignment in (("section", header.section_alignment), ("file", header.file_alignment)):
        if alignment.bit_count() != 1:
            yield f"has a {what} alignment of {alignment}, which isn't a power of 2"


def _section_faults(pe: Image) -> Iterator[str]:
    """Yield faults in the addresses: sections must be in order, adjacent, and aligned, and must fill the image."""
    unit = max(pe.header.section_alignment, 1)
    expected = _round_up(pe.header.headers_size, unit)
    for section in pe.sections:
        if section.address != expected:
            kind = "overlaps the data before it" if section.address < expected else "leaves a gap before it"
            yield f"has {_named(section)} at the address {section.address:#x} instead of {expected:#x}, so it {kind}"
        expected = _round_up(section.address + _memory(section), unit)
    if pe.sections and pe.header.image_size != expected:
        size = pe.header.image_size
        yield f"declares an image of {size:#x} bytes (SizeOfImage), but its sections end at {expected:#x}"


def _file_faults(pe: Image) -> Iterator[str]:
    """Yield faults in the file offsets: sections must be aligned, come after the headers, and not overlap."""
    unit = max(pe.header.file_alignment, 1)
    held = [section for section in pe.sections if section.file_size]
    for section in held:
        if section.offset % unit or section.file_size % unit:
            place = f"{section.file_size:#x} bytes at {section.offset:#x}"
            yield f"has {_named(section)} with {place}, not aligned to {unit:#x} bytes in the file"
        if section.offset < pe.header.headers_size:
            yield f"has {_named(section)} at {section.offset:#x} in the file, inside its headers"
    for one, other in pairwise(sorted(held, key=lambda section: section.offset)):
        if other.offset < one.end:
            yield f"has {_named(other)} at {other.offset:#x} in the file, inside {_named(one)}"


def _directory_faults(pe: Image) -> Iterator[str]:
    for number, entry in enumerate(pe.header.directories):
        if number in _NOT_IN_SECTIONS or not entry.address or not entry.size:
            continue
        stop = entry.address + entry.size
        unit = max(pe.header.section_alignment, 1)
        places = ((one.address, one.address + _round_up(_memory(one), unit)) for one in pe.sections)
        if not any(start <= entry.address and stop <= end for start, end in places):
            found = f"has its table of {_directory_name(number)} at the addresses {entry.address:#x} to {stop:#x}"
            yield f"{found}, a range that isn't inside a single section"


def _entry_faults(pe: Image) -> Iterator[str]:
    entry = pe.header.entry
    holder = next((one for one in pe.sections if one.address <= entry < one.memory_end), None)
    if entry and (holder is None or not holder.traits & _IS_CODE):
        yield f"has its entry point at the address {entry:#x}, but no section has code there"


def _debug_faults(pe: Image) -> Iterator[str]:
    """Yield each debug directory entry whose file offset and address don't match."""
    if found := debug_directory_fault(pe.header):
        yield f"has {found}, which is damaged: the limit is {MOST_DEBUG_ENTRIES}"
        return
    with suppress(PeError):  # a fault in the directory itself
        for entry in iter_debug_entries(pe):
            yield from _debug_places(pe, entry)


def _debug_places(pe: Image, entry: DebugEntry) -> Iterator[str]:
    with suppress(PeError):  # debug information that isn't loaded
        at, _ = pe.offset_of(entry.address, "debug information") if entry.address else (entry.offset, 0)
        if at != entry.offset:
            places = f"at {entry.offset:#x} according to its directory, but at {at:#x} according to its address"
            yield f"has {entry.size} bytes of debug information {places}"


def _checksum_fault(data: Data, pe: Pe) -> str:
    if not pe.header.checksum:
        return ""
    right = checksum_of(data, pe.header.checksum_offset)
    if right == pe.header.checksum:
        return ""
    return f"has the checksum {pe.header.checksum:#010x}, but its content has {right:#010x}: the file was edited later"


def _memory(section: PeSection) -> int:
    """Return a section's size in memory. If a linker recorded 0, the result is the size in the file."""
    return section.memory_size or section.file_size


def _named(section: PeSection) -> str:
    return f"the section {section.name}"


def _directory_name(number: int) -> str:
    names = {int(entry): entry.name.lower().replace("_", " ") for entry in PeDirectory}
    return names.get(number, f"number {number}")


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
