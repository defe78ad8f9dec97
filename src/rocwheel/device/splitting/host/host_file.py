"""Taking device code out of a fat ELF file: what is left runs on the host and names archives for the code.

One patch makes the host file, whatever the size of the code that leaves:

* wrappers become ``HIPK``, point to their marker and hold their index, and so do the relocations that give pointers;
* the section of device code takes no place in the file, and a section with the markers is loaded in its stead;
* no address changes but those of wrappers' pointers; symbols and all other sections stay where they are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES, FatBinary, read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.elf.header import ET_REL, SHT_DYNSYM, SHT_SYMTAB, ElfBytes, read_header, read_section_table
from rocwheel.binary.kind import is_coff_object
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.markers import MARKER_SECTION, Marker, encode_markers
from rocwheel.binary.pe.header import PeBytes, is_pe64, open_image
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.splitting.host.errors import NotSplittableError
from rocwheel.device.splitting.host.host_image import plan_host_image
from rocwheel.device.splitting.host.layout import HostLayout, lay_out
from rocwheel.device.splitting.host.rewrite import ElfTables, Rewrite, rewrite_file
from rocwheel.device.splitting.host.wrappers import WrapperContent, require_known_machine, write_wrapper
from rocwheel.device.trimming.library import FatLibrary, is_program, read_linked_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.reading import Data

__all__ = ["UnitLink", "has_code_to_split", "plan_host_file"]

_LARGEST_INDEX = (1 << 32) - 1


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
    place, or is smaller than the markers; `ElfError` and `DeviceCodeError` for damaged files, `KpackError`
    for markers that no runtime can read, and `ValueError` for links that don't match the wrappers.
    """
    fat = _find_code(data, name)
    if fat is None:
        return FilePatch(len(data))
    _check_links(fat, markers, links)
    if is_pe64(data):
        content, starts = encode_markers(markers)
        return plan_host_image(data, fat, content, [(starts[link.marker], link.index) for link in links])
    return _plan_library(ElfBytes(data, name), fat, _read(data, fat), markers, links)


def _plan_library(
    source: ElfBytes, fat: FatBinary, library: FatLibrary, markers: Sequence[Marker], links: Sequence[UnitLink]
) -> FilePatch:
    """Return the patch of a shared library or program for Linux."""
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
    tables = ElfTables(library.header, library.segments, library.sections)
    return rewrite_file(source, tables, _rewrite(library, layout, content, tuple(writes)))


def _find_code(data: Data, name: str) -> FatBinary | None:
    fat = read_fat_binary(data, name=name)
    if fat is None or (fat.is_empty and not fat.wrappers):
        return None
    names = _section_names(data, name)
    if names is None or any(marker in names for marker in (MARKER_SECTION, *PE_MARKER_NAMES)):
        return None
    if fat.is_kpacked or fat.is_empty:
        raise KpackError(Place(name), "wrappers of archives, but no marker", expected=f"a section {MARKER_SECTION}")
    if names.count(fat.section.name) > 1:
        raise NotSplittableError(Place(name), f"several sections {fat.section.name}", expected="one")
    return fat


def _section_names(data: Data, name: str) -> list[str] | None:
    """Return the names of all sections; none for an object file."""
    if is_coff_object(data):
        return None
    if is_pe64(data):
        return [section.name for section in open_image(PeBytes(data, name)).sections]
    source = ElfBytes(data, name)
    header = read_header(source)
    return None if header.type == ET_REL else [section.name for section in read_section_table(source, header)]


def _check_links(fat: FatBinary, markers: Sequence[Marker], links: Sequence[UnitLink]) -> None:
    indices_fit = all(0 <= link.index <= _LARGEST_INDEX and 0 <= link.marker < len(markers) for link in links)
    if len(links) != len(fat.wrappers) or not indices_fit:
        msg = f"{fat.name}: {len(links)} links for {len(fat.wrappers)} wrappers and {len(markers)} markers"
        raise ValueError(msg)


def _read(data: Data, fat: FatBinary) -> FatLibrary:
    try:
        library = read_linked_file(data, fat)
    except NotTrimmableError as e:
        raise NotSplittableError.because(e) from e
    require_known_machine(fat.name, library.header.machine)
    loaded_at = library.holder.address + library.start - library.holder.offset
    if loaded_at != fat.section.address:
        found = f".hip_fatbin at address {fat.section.address:#x}, which is loaded at {loaded_at:#x}"
        raise NotSplittableError(Place(fat.name, library.start), found)
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
                Place(library.fat.name, at or 0),
                f"a pointer to address {pointer.target:#x}, inside the device code",
                expected="pointers to device code in wrappers only",
            )


def _rewrite(library: FatLibrary, layout: HostLayout, content: bytes, writes: tuple[Replacement, ...]) -> Rewrite:
    """Return what becomes of the file: the code is gone, or zeros, and the marker stands behind it."""
    marker, padded = layout.marker, content.ljust(layout.marker_room, b"\0")
    return Rewrite(
        segments=layout.segments,
        sections=((library.section, layout.fat),),
        added=(marker,),
        changes=layout.changes,
        content=(Replacement(library.start, layout.zeros_to),),
        writes=(*writes, Replacement.of(marker.offset, padded)),
    )
