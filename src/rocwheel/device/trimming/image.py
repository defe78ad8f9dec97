"""A DLL or program of Windows that may be trimmed: the conditions that hold whatever becomes of its bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import BUNDLE_NAMES, FatBinary, pe_code_section
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.pe.header import Directory, Image, PeBytes, PeSection, open_image
from rocwheel.binary.pe.linkage import iter_pointers, read_export_addresses
from rocwheel.binary.pe.rewrite import FixedFileError, SignedFileError, require_movable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.reading import Data

__all__ = ["FatImage", "read_fat_image"]


class FatImage(msgspec.Struct, frozen=True):
    """A DLL or program with device code, as it is."""

    fat: FatBinary
    image: Image
    section: PeSection
    """``.hip_fat``."""
    pointers: tuple[tuple[int, int], ...]
    """File offsets of pointers into that section that the loader corrects, and the addresses that they hold."""

    @property
    def start(self) -> int:
        """File offset of the section."""
        return self.section.offset

    @property
    def name(self) -> str:
        """What errors call the file."""
        return self.fat.name


def read_fat_image(data: Data, fat: FatBinary) -> FatImage:
    """Read what surrounds the device code ``fat`` of the DLL or program ``data``.

    Raises `NotTrimmableError` when parts of the file can't be moved, when the device code shares its place, and when
    something is exported from there; `SignedFileError` for a signed file, another `PeError` for damaged ones.
    """
    image = open_image(PeBytes(data, fat.name))
    try:
        require_movable(image)
    except SignedFileError:
        raise
    except FixedFileError as e:
        raise NotTrimmableError(Place(fat.name), e.found, expected=e.expected) from e
    section = pe_code_section(image.sections)
    assert section is not None, "that is where the code was found"
    for found, expected in _obstacles(image, section):
        raise NotTrimmableError(Place(fat.name, section.offset), found, expected=expected)
    return FatImage(fat, image, section, tuple(_pointers_into(image, section)))


def _obstacles(image: Image, section: PeSection) -> Iterator[tuple[str, str]]:
    name, start, stop = section.name, section.address, section.memory_end
    if sum(one.name in BUNDLE_NAMES for one in image.sections) > 1:
        yield f"several sections {name}", "one"
    for which in Directory:
        entry = image.header.directory(which)
        is_loaded = entry is not None and which is not Directory.CERTIFICATES
        if entry and is_loaded and entry.address < stop and entry.address + entry.size > start:
            yield f"the table of {which.name.lower().replace('_', ' ')} in {name}", "only device code"
    if any(start <= address < stop for address in read_export_addresses(image)):
        yield f"an exported address in {name}", "addresses of bundles in wrappers only"


def _pointers_into(image: Image, section: PeSection) -> Iterator[tuple[int, int]]:
    for at, target in iter_pointers(image):
        if section.offset <= at < section.end:
            found = f"a pointer in {section.name}, at {at:#x}"
            raise NotTrimmableError(Place(image.source.name, at), found, expected="only device code")
        if section.address <= target < section.memory_end:
            yield at, target
