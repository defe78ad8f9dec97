"""Removes device code from fat files. The remaining host files refer to archives for the code.

In DLLs and programs, the device code section takes up no space in the file. The section keeps its address range in
memory, which the loader fills with zeros. As in files from AMD's tool, a section with the markers follows all other
sections. Its header follows the other headers, and the image grows by a page. Only the addresses in wrappers change.

One patch creates the host file, regardless of the size of the removed code:

* wrappers become ``HIPK`` with a pointer to their marker and their index, and relocations for pointers also change
* the device code section takes no space in the file, and a section with the markers is loaded instead
* only the addresses in wrapper pointers change, while symbols and all other sections stay in place in memory
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES, FatBinary, read_fat_binary
from rocwheel.binary.code_objects import CodePlace, NotTrimmableError
from rocwheel.binary.elf.header import ET_REL, SHT_DYNSYM, SHT_SYMTAB, ElfBytes, read_header, read_section_table
from rocwheel.binary.kind import is_coff_object
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.markers import MARKER_SECTION, Marker, encode_markers
from rocwheel.binary.pe.header import SECTION_LAYOUT, PeBytes, PeSection, is_pe64, open_image
from rocwheel.binary.pe.rewrite import PeRewrite, SignedFileError, has_room_for_section, rewrite_image, sections_end
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.split.host_layout import (
    ElfTables,
    NotSplittableError,
    Rewrite,
    WrapperContent,
    lay_out,
    require_known_machine,
    rewrite_file,
    write_image_wrappers,
    write_wrapper,
)
from rocwheel.device.trim import FatImage, FatLibrary, is_program, read_fat_image, read_linked_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.core.reading import Data


IMAGE_MARKER: Final = ".kpackrf"
_IS_READ_ONLY_DATA = 0x4000_0040
"""``IMAGE_SCN_MEM_READ``, ``IMAGE_SCN_CNT_INITIALIZED_DATA``."""


def plan_host_image(data: Data, fat: FatBinary, content: bytes, links: Sequence[tuple[int, int]]) -> FilePatch:
    """Return the patch that removes the device code ``fat`` from ``data`` and adds a section with ``content``.

    ``links`` contains, for each wrapper, the offset of its marker in that section and the index of its bundle. Raises
    `NotSplittableError` if something other than a wrapper refers to the code, or if other data shares the section. Also
    raises it if parts can't be moved, or if there is no room for another section header. Raises `PeError` for damaged
    files.
    """
    library = _read_image(data, fat)
    image, section = library.image, library.section
    # The section of markers, with ``size`` bytes, after all other sections in memory.
    size = len(content)
    header = image.header
    end = max(section.memory_end for section in image.sections)
    address, file_size = (
        -(-value // max(alignment, 1)) * max(alignment, 1)
        for value, alignment in ((end, header.section_alignment), (size, header.file_alignment))
    )
    marker = PeSection(IMAGE_MARKER, address, size, 0, file_size, _IS_READ_ONLY_DATA)
    memory_size = section.memory_size or section.file_size
    emptied = msgspec.structs.replace(section, memory_size=memory_size, file_size=0, offset=0)
    kept = tuple(emptied if one == section else one for one in image.sections)
    end = sections_end(image)
    at = end - section.file_size
    contents = (
        WrapperContent(image.header.image_base + marker.address + start, index, is_kpack=True) for start, index in links
    )
    rewrite = PeRewrite(
        sections=(*kept, marker),
        changes=((section.end, -section.file_size), (end, marker.file_size)),
        content=(Replacement(at, at + marker.file_size, content),),
        writes=write_image_wrappers(fat, contents),
        placed=((marker.name, at),),
    )
    return rewrite_image(data, image, rewrite)


def _read_image(data: Data, fat: FatBinary) -> FatImage:
    try:
        library = read_fat_image(data, fat)
    except NotTrimmableError as e:
        raise NotSplittableError.because(e) from e
    except SignedFileError as e:
        raise NotSplittableError(CodePlace(fat.name), e.found, expected=e.expected, remedy=e.remedy) from e
    header = library.image.header
    if not has_room_for_section(library.image):
        end = header.sections_offset + header.section_count * SECTION_LAYOUT.size
        raise NotSplittableError(
            CodePlace(fat.name, end),
            f"no room for another section header after the {header.section_count} headers that end at {end:#x}",
            expected=f"{SECTION_LAYOUT.size} free bytes before {header.headers_size:#x}, where the headers end",
        )
    known = {wrapper.pointer.stored_at for wrapper in fat.wrappers}
    for at, target in library.pointers:
        if at not in known:
            raise NotSplittableError(
                CodePlace(fat.name, at),
                f"a pointer to address {target:#x}, inside the device code",
                expected="pointers to device code only in wrappers",
            )
    return library


class UnitLink(msgspec.Struct, frozen=True):
    """The content of a wrapper after its code moves elsewhere.

    ``index`` is the number of its bundle in archives, which is the same for all wrappers of one bundle. ``marker`` is
    the number of the marker that refers to the archives.
    """

    index: int
    marker: int


def has_code_to_split(data: Data, *, name: str) -> bool:
    """Return whether ``data`` is a linked ELF file, DLL, or program that contains device code.

    The result is false for split files, whose code is elsewhere, and for detached debug information. Raises
    `NotSplittableError` for a file with several device code sections, and `ElfError` and `DeviceCodeError` for damaged
    files.
    """
    return _find_code(data, name) is not None


def plan_host_file(data: Data, markers: Sequence[Marker], links: Sequence[UnitLink], *, name: str) -> FilePatch:
    """Return the patch that removes the device code from ``data`` and adds ``markers``; ``links`` are for the wrappers.

    A file without code to split, or an already split file, stays the same, byte for byte.

    Raises `NotSplittableError` if something other than a wrapper refers to the code, or if other data shares the
    section. Also raises it if the code is smaller than the markers. Raises `ElfError` and `DeviceCodeError` for damaged
    files, and `KpackError` for markers that runtimes can't read.
    """
    fat = _find_code(data, name)
    if fat is None:
        return FilePatch(len(data))
    if is_pe64(data):
        content, starts = encode_markers(markers)
        return plan_host_image(data, fat, content, [(starts[link.marker], link.index) for link in links])
    # The patch for a Linux shared library or program.
    source = ElfBytes(data, name)
    library = _read(data, fat)
    content, starts = encode_markers(markers)
    layout = lay_out(library, len(content), is_program=is_program(source, library.header))
    targets = [layout.marker.address + starts[link.marker] for link in links]
    writes = [
        write
        for wrapper, link, target in zip(fat.wrappers, links, targets, strict=True)
        for write in write_wrapper(
            source, library.header.machine, wrapper, WrapperContent(target, link.index, is_kpack=True)
        )
    ]
    _require_alone(library, writes)
    padded = content.ljust(layout.marker_room, b"\0")
    rewrite = Rewrite(
        segments=layout.segments,
        sections=((library.section, layout.fat),),
        added=(layout.marker,),
        changes=layout.changes,
        content=(Replacement(library.start, layout.zeros_to),),
        writes=(*writes, Replacement.of(layout.marker.offset, padded)),
    )
    return rewrite_file(source, ElfTables(library.header, library.segments, library.sections), rewrite)


def _find_code(data: Data, name: str) -> FatBinary | None:
    fat = read_fat_binary(data, name=name)
    if fat is None or (fat.is_empty and not fat.wrappers):
        return None
    # The names of all sections, or `None` for an object file.
    if is_coff_object(data):
        names = None
    elif is_pe64(data):
        names = [section.name for section in open_image(PeBytes(data, name)).sections]
    else:
        source = ElfBytes(data, name)
        header = read_header(source)
        names = None if header.type == ET_REL else [section.name for section in read_section_table(source, header)]
    if names is None or any(marker in names for marker in (MARKER_SECTION, *PE_MARKER_NAMES)):
        return None
    if fat.is_kpacked or fat.is_empty:
        raise KpackError(
            CodePlace(name), "wrappers for archives, but no marker", expected=f"a section {MARKER_SECTION}"
        )
    if names.count(fat.section.name) > 1:
        raise NotSplittableError(CodePlace(name), f"several {fat.section.name} sections", expected="only one")
    return fat


def _read(data: Data, fat: FatBinary) -> FatLibrary:
    try:
        library = read_linked_file(data, fat)
    except NotTrimmableError as e:
        raise NotSplittableError.because(e) from e
    require_known_machine(fat.name, library.header.machine)
    loaded_at = library.holder.address + library.start - library.holder.offset
    if loaded_at != fat.section.address:
        found = f".hip_fatbin at address {fat.section.address:#x}, which is loaded at {loaded_at:#x}"
        raise NotSplittableError(CodePlace(fat.name, library.start), found)
    return library


def _require_alone(library: FatLibrary, writes: Sequence[Replacement]) -> None:
    """Reject a file if anything except its wrappers would refer to the removed code."""
    known = {write.start for write in writes}
    tables = [s for s in library.sections if s.type in {SHT_SYMTAB, SHT_DYNSYM}]
    for pointer in library.addresses:
        at = pointer.stored_at
        is_symbol = at is not None and any(table.offset <= at < table.offset + table.size for table in tables)
        if at not in known and not is_symbol:
            raise NotSplittableError(
                CodePlace(library.fat.name, at or 0),
                f"a pointer to address {pointer.target:#x}, inside the device code",
                expected="pointers to device code only in wrappers",
            )
