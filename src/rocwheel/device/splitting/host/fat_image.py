"""Putting device code back into a DLL or program of Windows, to the addresses that it had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES, pe_code_section
from rocwheel.binary.code_objects import Place
from rocwheel.binary.pe.header import Image, PeBytes, PeSection, open_image
from rocwheel.binary.pe.rewrite import PeRewrite, require_movable, rewrite_image
from rocwheel.core.patch import Replacement
from rocwheel.device.splitting.host.errors import NoRoomForCodeError, NotJoinableError
from rocwheel.device.splitting.host.wrappers import WrapperContent, write_image_wrappers
from rocwheel.device.trimming.packing import page_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.core.patch import FilePatch
    from rocwheel.core.reading import Data

__all__ = ["plan_fat_image"]

_LARGEST_IMAGE = 1 << 31
"""Bytes of memory that Windows loads for one file, at most."""


def plan_fat_image(data: Data, fat: FatBinary, bundles: Sequence[Data], units: Sequence[int]) -> FilePatch:
    """Return the patch that puts ``bundles`` into the host file ``data``; ``units`` says which each wrapper points to.

    The section of markers goes, and the code stands at the addresses that it had before it was split off.
    Raises `NotJoinableError` for bundles that don't fit, and where something stands behind the markers; `PeError` for
    damaged and signed files.
    """
    image = open_image(PeBytes(data, fat.name))
    require_movable(image)
    section, marker = _find_sections(image)
    starts = _pack(section.address, bundles)
    size = starts[-1] + len(bundles[-1]) - section.address if bundles else 0
    _require_room(image, section, marker, size)
    filled = _filled(image, section, size)
    at = section.offset if section.file_size else _end_before(image, section)
    place = (at, at + filled.file_size)
    rewrite = PeRewrite(
        sections=tuple(filled if one == section else one for one in image.sections if one != marker),
        changes=((at + section.file_size, filled.file_size - section.file_size), (marker.end, -marker.file_size)),
        content=tuple(_code(bundles, [start - section.address + at for start in starts], place)),
        writes=write_image_wrappers(fat, (WrapperContent(image.header.image_base + starts[unit]) for unit in units)),
        placed=((section.name, at),),
    )
    return rewrite_image(data, image, rewrite)


def _filled(image: Image, section: PeSection, size: int) -> PeSection:
    """Return the section with ``size`` bytes in the file, filled up to the file alignment, and no less memory."""
    alignment = max(image.header.file_alignment, 1)
    file_size = -(-size // alignment) * alignment
    return msgspec.structs.replace(section, memory_size=max(section.memory_size, size), file_size=file_size)


def _find_sections(image: Image) -> tuple[PeSection, PeSection]:
    """Return the sections of device code and of markers; raise `NotJoinableError` where the latter can't leave."""
    section = pe_code_section(image.sections)
    last = max(image.sections, key=lambda one: one.address)
    assert section is not None, "that is where the wrappers were found"
    if last.name not in PE_MARKER_NAMES or last != image.sections[-1]:
        raise NotJoinableError(
            Place(image.source.name),
            f"{last.name} behind all other sections",
            expected="the section of markers, .kpackrf, which leaves with them",
            remedy="Join the file that was there before it was changed again.",
        )
    return section, last


def _pack(address: int, bundles: Sequence[Data]) -> list[int]:
    """Return the address of each bundle: the first at ``address``, each on a page."""
    starts: list[int] = []
    position = 0
    for bundle in bundles:
        starts.append(address + page_end(position))
        position = page_end(position) + len(bundle)
    return starts


def _require_room(image: Image, section: PeSection, marker: PeSection, size: int) -> None:
    behind = (one.address for one in image.sections if one.address > section.address and one != marker)
    room = min(behind, default=_LARGEST_IMAGE) - section.address
    if size > room:
        raise NoRoomForCodeError(Place(image.source.name, section.offset), size, room)


def _end_before(image: Image, section: PeSection) -> int:
    """Return the file offset where the bytes of a section without any belong: behind those of the ones before it."""
    before = image.sections[: image.sections.index(section)]
    return max([image.header.headers_size, *(one.end for one in before if one.file_size)])


def _code(bundles: Sequence[Data], starts: Sequence[int], place: tuple[int, int]) -> Iterator[Replacement]:
    """Yield the bundles at file offsets ``starts``, and zeros for all the rest of their ``place``."""
    position, stop = place
    for start, bundle in zip(starts, bundles, strict=True):
        if position < start:
            yield Replacement(position, start)
        yield Replacement.of(start, bundle)
        position = start + len(bundle)
    if position < stop:
        yield Replacement(position, stop)
