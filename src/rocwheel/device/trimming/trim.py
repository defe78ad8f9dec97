"""Taking the free space of ``.hip_fatbin`` out of a shared library, once its bundles have become smaller.

Bundles move together at the section's start, what lies behind them leaves the file, and no other address changes:

* the section and the segment that holds it end with the bundles, and what the latter held behind the section is loaded
  from closer to them in the file (`rocwheel.device.trimming.segment_cut`);
* relocations give the wrappers, and whatever else points at bundles, the new addresses; so do symbols;
* what comes later in the file moves up by whole pages.

So all that is loaded lies in sections, and program headers behind the ELF header: strip and objcopy, of binutils, LLVM
and elfutils, and patchelf work on the result as on the original.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bounded_bytes import Moves
from rocwheel.binary.code_objects import NotTrimmableError, Place
from rocwheel.binary.elf.header import E_PHOFF, Segment
from rocwheel.binary.elf.patch import patch_of_writes
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.device.trimming.image_trim import plan_image_trim
from rocwheel.device.trimming.library import FatLibrary, read_fat_library
from rocwheel.device.trimming.packing import BundleMove, pack_bundles, page_end
from rocwheel.device.trimming.segment_cut import cut_segment
from rocwheel.device.trimming.static_library import is_object_file, plan_object_trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.storage import BundleChange
    from rocwheel.binary.bundles.wrappers import Wrapper
    from rocwheel.binary.elf.header import Section
    from rocwheel.core.reading import Data

__all__ = ["plan_trim"]

_ADDRESS = struct.Struct("<Q")
_TABLES = struct.Struct("<QQ")
"""The offsets of program headers and sections, which are next to each other in the ELF header."""


class _Layout(msgspec.Struct, frozen=True):
    """The library as it becomes: where the bundles go, and how the rest moves.

    ``moved`` says what else moves, ``segments`` are the program headers, still with offsets of the old file.
    """

    moves: tuple[BundleMove, ...]
    section_stop: int
    moved: Moves
    segments: tuple[Segment, ...]

    def offset(self, old: int) -> int:
        """Return the file offset of what was at ``old``."""
        return self.moved.offset(old)


def plan_trim(data: Data, *, name: str, changes: Sequence[BundleChange] = ()) -> FilePatch:
    """Return the patch that makes ``changes`` to the bundles of the shared library ``data`` and trims it.

    Where no page would be gained, the patch makes the changes only; without changes, it changes nothing.

    Raises `NotTrimmableError` for ELF programs, for object files as `plan_object_trim` does, when a symbol, not an
    address, gives the place of a wrapper's bundle, when a symbol or a relocation holds an address inside of a bundle,
    and when no program header is left for what follows the bundles; another `InputError` for damaged files.
    """
    if is_pe64(data):
        return plan_image_trim(data, name=name, changes=changes)
    if is_object_file(data, name=name):
        return plan_object_trim(data, name=name, changes=changes)
    library = read_fat_library(data, name=name)
    moves = pack_bundles(library.start, tuple(library.fat.iter_bundles(data)), changes)
    layout = _lay_out(library, moves) if moves else None
    if layout is None or layout.offset(len(data)) >= len(data):
        return FilePatch(len(data), tuple(new for change in changes for new in change.replacements))
    size = layout.offset(len(data))
    edits = patch_of_writes([*_pointers(library, layout), *_headers(library, layout)], size, name=name)
    return FilePatch(size, tuple(_contents(library, layout, len(data)))).then(edits)


def _lay_out(library: FatLibrary, moves: tuple[BundleMove, ...]) -> _Layout | None:
    """Decide where everything goes; none when there is no page to gain.

    The section still fills its last page: the runtime reads 4096 bytes of a plain bundle.
    """
    used = page_end(moves[-1].content[-1].stop - library.start)
    section_stop = min(library.start + used, library.stop)
    gain = (library.stop - section_stop) // library.unit * library.unit
    if gain == 0:
        return None
    cut = cut_segment(
        (library.segments, library.sections), library.holder, (section_stop, library.stop), name=library.fat.name
    )
    padded = ((cut.padded_at, cut.padding - gain),) if cut.padding else ()
    return _Layout(moves, section_stop, Moves(((library.stop, -gain), *padded)), cut.segments)


def _contents(library: FatLibrary, layout: _Layout, old_size: int) -> Iterator[Replacement]:
    """Yield the bundles and all that lies behind them in rising order, and zeros in between."""
    position = library.start
    for piece in (*(piece for move in layout.moves for piece in move.content), *layout.moved.iter_moved(old_size)):
        if position < piece.start:
            yield Replacement(position, piece.start)
        yield piece
        position = piece.stop


def _pointers(library: FatLibrary, layout: _Layout) -> Iterator[Replacement]:
    """Yield the new addresses of bundles, wherever wrappers, relocations or symbols hold them."""
    moved = _moved_addresses(library, layout)
    edits = {
        pointer.stored_at: new
        for pointer in library.addresses
        if pointer.stored_at is not None and (new := moved.new(pointer.target)) != pointer.target
    }
    for wrapper in library.fat.wrappers:
        if (new := moved.new(wrapper.pointer.target)) != wrapper.pointer.target:
            edits[_stored_at(library.fat.name, wrapper)] = new
    for place, new in edits.items():
        yield Replacement.of(layout.offset(place), _ADDRESS.pack(new))


class _Addresses(msgspec.Struct, frozen=True):
    """Where bundles are loaded, before and after, and from which address on nothing else stays.

    The section's end is among them: linkers let ``_end`` and ``_edata`` stand there where nothing is loaded behind it.
    """

    name: str
    moves: dict[int, int]
    stays: int
    to_offset: int

    def new(self, old: int) -> int:
        """Return the address of what was at ``old``; raises `NotTrimmableError` where that is gone."""
        if old not in self.moves and old >= self.stays:
            raise NotTrimmableError(
                Place(self.name, old + self.to_offset),
                "a symbol or a relocation holds an address inside the device code",
                expected="only addresses of bundles",
            )
        return self.moves.get(old, old)


def _moved_addresses(library: FatLibrary, layout: _Layout) -> _Addresses:
    by = library.section.address - library.start
    moves = {move.old + by: move.new + by for move in layout.moves}
    moves.setdefault(library.stop + by, layout.section_stop + by)
    stays = min([layout.section_stop + by, *(old for old, new in moves.items() if old != new)])
    return _Addresses(library.fat.name, moves, stays, -by)


def _stored_at(name: str, wrapper: Wrapper) -> int:
    """Return the file offset of what decides a wrapper's pointer."""
    if wrapper.pointer.stored_at is None:
        raise NotTrimmableError(
            Place(name, wrapper.offset),
            "a wrapper whose relocation names its bundle by a symbol",
            expected="one by an address, as linkers make for shared libraries",
        )
    return wrapper.pointer.stored_at


def _headers(library: FatLibrary, layout: _Layout) -> Iterator[Replacement]:
    """Yield the tables of program headers and sections, and their offsets in the ELF header."""
    tables = layout.offset(library.header.segments_offset), layout.offset(library.header.sections_offset)
    segments = (msgspec.structs.replace(s, offset=layout.offset(s.offset)) for s in layout.segments)
    sections = (_moved(section, library, layout) for section in library.sections)
    yield Replacement.of(E_PHOFF, _TABLES.pack(*tables))
    yield Replacement.of(tables[0], b"".join(segment.pack() for segment in segments))
    yield Replacement.of(tables[1], b"".join(section.pack() for section in sections))


def _moved(section: Section, library: FatLibrary, layout: _Layout) -> Section:
    if section == library.section:
        return msgspec.structs.replace(section, size=layout.section_stop - library.start)
    return msgspec.structs.replace(section, offset=layout.offset(section.offset))
