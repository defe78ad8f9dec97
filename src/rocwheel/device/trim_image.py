"""Makes DLLs and programs of Windows smaller by taking out the space that device code left.

Bundles move together at the section's start, and wrappers get their new addresses. What lies behind them leaves the
file, not memory: the loader fills the section up with zeros to the size that it had. What comes later in the file moves
up; in memory, nothing else moves.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import BUNDLE_NAMES, FatBinary, pe_code_section, read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.pe.header import Directory, Image, PeBytes, PeSection, open_image
from rocwheel.binary.pe.linkage import iter_pointers, read_export_addresses
from rocwheel.binary.pe.rewrite import (
    FixedFileError,
    PeRewrite,
    SignedFileError,
    edited_image,
    require_movable,
    rewrite_image,
)
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.trim_space import BundleMove, pack_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.core.reading import Data


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


_ADDRESS = struct.Struct("<Q")


def plan_image_trim(data: Data, *, name: str, changes: Sequence[BundleChange] = ()) -> FilePatch:
    """Return the patch that makes ``changes`` to the bundles of the DLL or program ``data`` and trims it.

    Where nothing would be gained, the patch makes the changes only. Raises as `read_fat_image` does, and
    `NotTrimmableError` for a pointer into a bundle; another `InputError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    assert isinstance(fat, FatBinary), "require_trimmable has seen its code"
    library = read_fat_image(data, fat)
    moves = pack_bundles(library.start, tuple(fat.iter_bundles(data)), changes)
    size = _file_size(library, moves)
    if size >= library.section.file_size:
        patch = FilePatch(len(data), tuple(new for change in changes for new in change.replacements))
        return edited_image(data, patch, name=name)
    section = msgspec.structs.replace(
        library.section, memory_size=library.section.memory_size or library.section.file_size, file_size=size
    )
    rewrite = PeRewrite(
        sections=tuple(section if one == library.section else one for one in library.image.sections),
        changes=((library.section.end, size - library.section.file_size),),
        content=tuple(_content(library, moves, library.start + size)),
        writes=tuple(_pointers(library, moves)),
    )
    return rewrite_image(data, library.image, rewrite)


def _file_size(library: FatImage, moves: Sequence[BundleMove]) -> int:
    """Return the bytes of the file that the section needs: up to the last bundle, and the file alignment."""
    used = moves[-1].content[-1].stop - library.start if moves else library.section.file_size
    alignment = max(library.image.header.file_alignment, 1)
    return -(-used // alignment) * alignment


def _content(library: FatImage, moves: Sequence[BundleMove], stop: int) -> Iterator[Replacement]:
    """Yield the bundles and the zeros between them and behind the last, in rising order."""
    position = library.start
    for piece in (piece for move in moves for piece in move.content):
        if position < piece.start:
            yield Replacement(position, piece.start)
        yield piece
        position = piece.stop
    if position < stop:
        yield Replacement(position, stop)


def _pointers(library: FatImage, moves: Sequence[BundleMove]) -> Iterator[Replacement]:
    """Yield the new addresses of bundles, wherever wrappers and other pointers hold them."""
    by = library.section.address - library.start
    places = {move.old + by: move.new + by for move in moves}
    holders = dict(library.pointers)
    holders |= {wrapper.pointer.stored_at or 0: wrapper.pointer.target for wrapper in library.fat.wrappers}
    for at, target in sorted(holders.items()):
        if target not in places:
            found = f"a pointer to address {target:#x}, inside the device code"
            raise NotTrimmableError(Place(library.name, at), found, expected="only addresses of bundles")
        if places[target] != target:
            yield Replacement.of(at, _ADDRESS.pack(places[target] + library.image.header.image_base))
