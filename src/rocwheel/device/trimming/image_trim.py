"""Taking the free space of ``.hip_fat`` out of a DLL or program, once its bundles have become smaller.

Bundles move together at the section's start, and wrappers get their new addresses. What lies behind them leaves the
file, not memory: the loader fills the section up with zeros to the size that it had. What comes later in the file moves
up; in memory, nothing else moves.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.pe.rewrite import PeRewrite, edited_image, rewrite_image
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.trimming.image import FatImage, read_fat_image
from rocwheel.device.trimming.packing import BundleMove, pack_bundles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.core.reading import Data

__all__ = ["plan_image_trim"]

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
