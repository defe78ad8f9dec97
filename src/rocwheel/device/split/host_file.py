"""Takes device code out of fat files: what is left runs on the host and names archives for the rest.

The section of device code keeps its place in memory, which the loader fills with zeros, and has no bytes in the file. A
section with the markers comes behind all others, as AMD's tool makes it: its header takes the place behind the others',
and the image grows by a page. No other address changes but those that wrappers hold.

One patch makes the host file, whatever the size of the code that leaves:

* wrappers become ``HIPK``, point to their marker and hold their index, and so do the relocations that give pointers;
* the section of device code takes no place in the file, and a section with the markers is loaded in its stead;
* no address changes but those of wrappers' pointers; symbols and all other sections stay where they are in memory.
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
    """Return the patch that takes the device code ``fat`` out of ``data`` and puts in a section with ``content``.

    ``links`` are, for each wrapper, where in that section its marker begins and the index of its bundle.
    Raises `NotSplittableError` for files whose code something else than a wrapper refers to, whose code shares its
    place, whose parts can't be moved, and where one more section header has no room; `PeError` for damaged files.
    """
    library = _read_image(data, fat)
    image, section = library.image, library.section
    # The section of markers, of ``size`` bytes, behind all others in memory.
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
            f"no room for one more section header behind the {header.section_count} that end at {end:#x}",
            expected=f"{SECTION_LAYOUT.size} free bytes before {header.headers_size:#x}, where the headers end",
        )
    known = {wrapper.pointer.stored_at for wrapper in fat.wrappers}
    for at, target in library.pointers:
        if at not in known:
            raise NotSplittableError(
                CodePlace(fat.name, at),
                f"a pointer to address {target:#x}, inside the device code",
                expected="pointers to device code in wrappers only",
            )
    return library


class UnitLink(msgspec.Struct, frozen=True):
    """What a wrapper says once its code is elsewhere.

    ``index`` is the number of its bundle in archives, the same for all wrappers of one bundle; ``marker`` says which of
    the file's markers names the archives.
    """

    index: int
    marker: int


def has_code_to_split(data: Data, *, name: str) -> bool:
    """Return whether ``data`` is a linked ELF file, or a DLL or program of Windows, with device code of its own.

    That of a file that was split is elsewhere, and debug information split off a program never had any. Raises
    `NotSplittableError` for a file with several sections of device code, `ElfError` and `DeviceCodeError` for damaged
    ones.
    """
    return _find_code(data, name) is not None


def plan_host_file(data: Data, markers: Sequence[Marker], links: Sequence[UnitLink], *, name: str) -> FilePatch:
    """Return the patch that takes the device code out of ``data`` and puts ``markers`` in; ``links`` are the wrappers'.

    A file without code to split, or one that was split already, stays as it is, byte for byte.

    Raises `NotSplittableError` for files whose code something else than a wrapper refers to, whose code shares its
    place, or is smaller than the markers; `ElfError` and `DeviceCodeError` for damaged files, and `KpackError` for
    markers that no runtime can read.
    """
    fat = _find_code(data, name)
    if fat is None:
        return FilePatch(len(data))
    if is_pe64(data):
        content, starts = encode_markers(markers)
        return plan_host_image(data, fat, content, [(starts[link.marker], link.index) for link in links])
    # The patch of a shared library or program for Linux.
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
    # The names of all sections; none for an object file.
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
        raise KpackError(CodePlace(name), "wrappers of archives, but no marker", expected=f"a section {MARKER_SECTION}")
    if names.count(fat.section.name) > 1:
        raise NotSplittableError(CodePlace(name), f"several sections {fat.section.name}", expected="one")
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
    """Refuse a file where something beside the wrappers will have an address in the code that is gone."""
    known = {write.start for write in writes}
    tables = [s for s in library.sections if s.type in {SHT_SYMTAB, SHT_DYNSYM}]
    for pointer in library.addresses:
        at = pointer.stored_at
        is_symbol = at is not None and any(table.offset <= at < table.offset + table.size for table in tables)
        if at not in known and not is_symbol:
            raise NotSplittableError(
                CodePlace(library.fat.name, at or 0),
                f"a pointer to address {pointer.target:#x}, inside the device code",
                expected="pointers to device code in wrappers only",
            )
