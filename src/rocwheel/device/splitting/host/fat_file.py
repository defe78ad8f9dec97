"""Putting device code back into a host file, so that it is a fat one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import elf_code_section, read_fat_binary
from rocwheel.binary.code_objects import Place
from rocwheel.binary.elf.dynamic import is_program_only, read_dynamic
from rocwheel.binary.elf.header import SHT_PROGBITS, ElfBytes, read_header, read_section_table, read_segments
from rocwheel.binary.elf.mapping import realigned, require_loadable
from rocwheel.binary.kpack.markers import MARKER_SECTION
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.splitting.host.errors import NotJoinableError
from rocwheel.device.splitting.host.fat_image import plan_fat_image
from rocwheel.device.splitting.host.fat_layout import FatLayout, HostTables, lay_out_code
from rocwheel.device.splitting.host.rewrite import ElfTables, Rewrite, rewrite_file
from rocwheel.device.splitting.host.wrappers import WrapperContent, require_known_machine, write_wrapper
from rocwheel.device.trimming.packing import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data

__all__ = ["plan_fat_file"]


def plan_fat_file(data: Data, bundles: Sequence[Data], units: Sequence[int], *, name: str) -> FilePatch:
    """Return the patch that puts ``bundles`` into the host file ``data``; ``units`` says which each wrapper points to.

    They come in their order, each on a page of its own, to the addresses from which device code was taken. A file that
    was split and joined can be split again, to the same bytes.

    Raises `NotJoinableError` for a file that has its code, and for bundles that don't fit; `ElfError` and
    `DeviceCodeError` for damaged files, and `ValueError` for units that don't match the wrappers.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or not fat.wrappers or not all(wrapper.is_kpack for wrapper in fat.wrappers):
        raise NotJoinableError(Place(name), "no wrappers of archives", expected="a file whose code is in archives")
    if len(units) != len(fat.wrappers) or not all(0 <= unit < len(bundles) for unit in units):
        msg = f"{name}: {len(units)} units for {len(fat.wrappers)} wrappers, and {len(bundles)} bundles"
        raise ValueError(msg)
    if is_pe64(data):
        return plan_fat_image(data, fat, bundles, units)
    source = ElfBytes(data, name)
    host = _read(source)
    starts, size = _pack(fat.section.address, bundles)
    layout = lay_out_code(host, size)
    writes = [
        write
        for wrapper, unit in zip(fat.wrappers, units, strict=True)
        for write in write_wrapper(source, host.tables.header.machine, wrapper, WrapperContent(starts[unit]))
    ]
    fat_file = rewrite_file(source, host.tables, _rewrite(host, layout, size, tuple(writes)))
    return fat_file.then(FilePatch(fat_file.size, tuple(_code(host, layout, starts, bundles))))


def _read(source: ElfBytes) -> HostTables:
    header = read_header(source)
    segments, sections = read_segments(source, header), read_section_table(source, header)
    require_loadable(source, header, segments)
    is_program = is_program_only(header.type, segments, read_dynamic(source, segments))
    segments = realigned(segments, is_program=is_program)
    require_known_machine(source.name, header.machine)
    section = elf_code_section(sections)
    assert section is not None, "that is where the wrappers were found"
    marker = next((one for one in sections if one.name == MARKER_SECTION), None)
    return HostTables(source.name, ElfTables(header, segments, sections), section, marker)


def _pack(address: int, bundles: Sequence[Data]) -> tuple[list[int], int]:
    """Return the address of each bundle, the first at ``address``, and how many bytes they take."""
    starts: list[int] = []
    position = address
    for bundle in bundles:
        starts.append(position if not starts else -(-position // PAGE) * PAGE)
        position = starts[-1] + len(bundle)
    return starts, position - address


def _rewrite(host: HostTables, layout: FatLayout, size: int, writes: tuple[Replacement, ...]) -> Rewrite:
    """Return what becomes of the file but for the code: room for it, and no marker."""
    fat = msgspec.structs.replace(host.fat, type=SHT_PROGBITS, offset=layout.start, size=size)
    gone = [(host.marker, None)] if host.marker else []
    return Rewrite(
        segments=layout.segments,
        sections=((host.fat, fat), *gone),
        added=(),
        changes=((layout.at, layout.inserted),),
        content=(Replacement(layout.at, layout.at + layout.inserted),) if layout.inserted else (),
        writes=writes,
        holder=layout.holder,
    )


def _code(host: HostTables, layout: FatLayout, starts: Sequence[int], bundles: Sequence[Data]) -> Iterator[Replacement]:
    """Yield the bundles, and zeros for all the rest of the room."""
    by = layout.start - host.fat.address
    position = layout.start
    for start, bundle in zip(starts, bundles, strict=True):
        if position < start + by:
            yield Replacement(position, start + by)
        yield Replacement.of(start + by, bundle)
        position = start + by + len(bundle)
    if position < layout.start + layout.room:
        yield Replacement(position, layout.start + layout.room)
