"""Taking device code out of a DLL or program of Windows.

The section of device code keeps its place in memory, which the loader fills with zeros, and has no bytes in the file. A
section with the markers comes behind all others, as AMD's tool makes it: its header takes the place behind the others',
and the image grows by a page. No other address changes but those that wrappers hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.pe.header import SECTION_LAYOUT, Image, PeSection
from rocwheel.binary.pe.rewrite import PeRewrite, SignedFileError, has_room_for_section, rewrite_image, sections_end
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.splitting.host.errors import NotSplittableError
from rocwheel.device.splitting.host.wrappers import WrapperContent, write_image_wrappers
from rocwheel.device.trimming.image import FatImage, read_fat_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.bundles.wrappers import FatBinary
    from rocwheel.core.reading import Data

__all__ = ["IMAGE_MARKER", "plan_host_image"]

IMAGE_MARKER: Final = ".kpackrf"
_IS_READ_ONLY_DATA = 0x4000_0040
"""``IMAGE_SCN_MEM_READ``, ``IMAGE_SCN_CNT_INITIALIZED_DATA``."""


def plan_host_image(data: Data, fat: FatBinary, content: bytes, links: Sequence[tuple[int, int]]) -> FilePatch:
    """Return the patch that takes the device code ``fat`` out of ``data`` and puts in a section with ``content``.

    ``links`` are, for each wrapper, where in that section its marker begins and the index of its bundle.
    Raises `NotSplittableError` for files whose code something else than a wrapper refers to, whose code shares its
    place, whose parts can't be moved, and where one more section header has no room; `PeError` for damaged files.
    """
    library = _read(data, fat)
    image, section = library.image, library.section
    marker = _marker(image, len(content))
    kept = tuple(_emptied(one) if one == section else one for one in image.sections)
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


def _emptied(section: PeSection) -> PeSection:
    size = section.memory_size or section.file_size
    return msgspec.structs.replace(section, memory_size=size, file_size=0, offset=0)


def _read(data: Data, fat: FatBinary) -> FatImage:
    try:
        library = read_fat_image(data, fat)
    except NotTrimmableError as e:
        raise NotSplittableError.because(e) from e
    except SignedFileError as e:
        raise NotSplittableError(Place(fat.name), e.found, expected=e.expected, remedy=e.remedy) from e
    _require_room(library)
    known = {wrapper.pointer.stored_at for wrapper in fat.wrappers}
    for at, target in library.pointers:
        if at not in known:
            raise NotSplittableError(
                Place(fat.name, at),
                f"a pointer to address {target:#x}, inside the device code",
                expected="pointers to device code in wrappers only",
            )
    return library


def _require_room(library: FatImage) -> None:
    header = library.image.header
    if not has_room_for_section(library.image):
        end = header.sections_offset + header.section_count * SECTION_LAYOUT.size
        raise NotSplittableError(
            Place(library.name, end),
            f"no room for one more section header behind the {header.section_count} that end at {end:#x}",
            expected=f"{SECTION_LAYOUT.size} free bytes before {header.headers_size:#x}, where the headers end",
        )


def _marker(image: Image, size: int) -> PeSection:
    """Return the section of markers, of ``size`` bytes, behind all others in memory."""
    header = image.header
    end = max(section.memory_end for section in image.sections)
    address, file_size = (
        -(-value // max(alignment, 1)) * max(alignment, 1)
        for value, alignment in ((end, header.section_alignment), (size, header.file_alignment))
    )
    return PeSection(IMAGE_MARKER, address, size, 0, file_size, _IS_READ_ONLY_DATA)
