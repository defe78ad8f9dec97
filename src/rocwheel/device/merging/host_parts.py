"""Whether two ELF files are the same for the host: build ids and device code aside.

A linker puts device code between other sections. So its size decides where later sections are, and which addresses are
in the code. Files of one layout are compared byte by byte; others section by section, as far as they are loaded, where
words may differ that are addresses of something that has moved.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.header import read_header
from rocwheel.binary.elf.sections import SHF_ALLOC, Section, read_section_table
from rocwheel.binary.kind import is_elf64
from rocwheel.binary.kpack.marker import MARKER_SECTION
from rocwheel.binary.kpack.split_library import read_split_library
from rocwheel.core.reading import have_same_bytes
from rocwheel.device.merging.moved_words import are_same_but_moved, how_loaded
from rocwheel.device.merging.moves import Moves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.reading import Data

__all__ = ["HostDifference", "compare_host_parts"]

_CODE = ".hip_fatbin"
_BUILD_ID = ".note.gnu.build-id"
_RELATIVE = ".relr.dyn"
"""Addresses as bits, whose size depends on where they lie; what is at these addresses is compared itself."""
_DEBUG_LINK = ".gnu_debuglink"
"""A checksum of another file."""
_ANY_SIZE = frozenset({_CODE, _RELATIVE, MARKER_SECTION})
"""Markers are compared by what they say: who joins a library finds its targets in them, too."""
_ANY_BYTES = _ANY_SIZE | {_BUILD_ID, _DEBUG_LINK}


class HostDifference(enum.Enum):
    """How far two files of one path are from each other."""

    NONE = "none"
    BUILD_ID = "build id"
    LAYOUT = "space of device code"
    """The device code is elsewhere, and its space has another size."""
    DEVICE_CODE = "device code"
    HOST = "host part"


def compare_host_parts(one: Data, other: Data, *, name: str) -> HostDifference:
    """Return what two files of one path differ in, the worst of it.

    Raises `ElfError` and `DeviceCodeError`, led by ``name``, for damaged files.
    """
    if have_same_bytes(one, other):
        return HostDifference.NONE
    if not (is_elf64(one) and is_elf64(other)):
        return HostDifference.HOST
    mine, theirs = _sections(one, name), _sections(other, name)
    if _shape(mine) != _shape(theirs) or _units(one, name) != _units(other, name):
        return HostDifference.HOST
    if _layout(mine) == _layout(theirs):
        return _compare_bytes(one, other, mine)
    return _compare_sections(one, other, list(zip(mine, theirs, strict=True)), name)


def _compare_sections(one: Data, other: Data, pairs: Sequence[tuple[Section, Section]], name: str) -> HostDifference:
    """Compare files whose sections lie elsewhere."""
    fat, other_fat = read_fat_binary(one, name=name), read_fat_binary(other, name=name)
    if fat is None or other_fat is None or len(fat.wrappers) != len(other_fat.wrappers):
        return HostDifference.HOST
    moves = Moves(pairs, _pointers(fat, other_fat))
    source = ElfBytes(one, name)
    loaded = how_loaded(source, read_header(source), [mine for mine, _ in pairs])
    if not all(are_same_but_moved(one, other, pair, moves, loaded) for pair in pairs if _is_compared(pair[0])):
        return HostDifference.HOST
    return HostDifference.LAYOUT if fat.is_kpacked else HostDifference.DEVICE_CODE


def _units(data: Data, name: str) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return what the wrappers of a split library have a runtime look up; nothing for others."""
    split = read_split_library(data, name=name)
    units = split.units if split else ()
    return [(unit.index, unit.marker.kernel_name, unit.marker.search_paths) for unit in units]


def _sections(data: Data, name: str) -> tuple[Section, ...]:
    source = ElfBytes(data, name)
    return read_section_table(source, read_header(source))


def _shape(sections: Sequence[Section]) -> list[tuple[object, ...]]:
    """Return what of each section doesn't depend on the size of device code."""
    return [
        (section.name, section.type, section.flags, section.link, section.size if _has_size(section) else 0)
        for section in sections
    ]


def _has_size(section: Section) -> bool:
    """Return whether the size of a section is that of the program: tables for debuggers name temporary files, too."""
    return bool(section.flags & SHF_ALLOC) and section.name not in _ANY_SIZE


def _layout(sections: Sequence[Section]) -> list[tuple[int, ...]]:
    return [(section.address, section.offset, section.size) for section in sections]


def _compare_bytes(one: Data, other: Data, sections: Sequence[Section]) -> HostDifference:
    """Compare files of one layout: everything, with what may hold any bytes left out where it lies."""
    if len(one) != len(other):
        return HostDifference.HOST
    found = HostDifference.BUILD_ID
    position = 0
    for section in sorted((s for s in sections if s.name in _ANY_BYTES), key=lambda s: s.offset):
        if not section.has_bytes or section.name == _RELATIVE:
            continue
        stop = section.offset + section.size
        if not have_same_bytes(one[position : section.offset], other[position : section.offset]):
            return HostDifference.HOST
        if section.name == _CODE and not have_same_bytes(one[section.offset : stop], other[section.offset : stop]):
            found = HostDifference.DEVICE_CODE
        position = max(position, stop)
    return found if have_same_bytes(one[position:], other[position:]) else HostDifference.HOST


def _pointers(one: FatBinary, other: FatBinary) -> list[tuple[int, int]]:
    """Return where wrappers point to: bundles lie behind those of the units before them, and markers likewise."""
    return [(a.pointer.target, b.pointer.target) for a, b in zip(one.wrappers, other.wrappers, strict=True)]


def _is_compared(section: Section) -> bool:
    return bool(section.flags & SHF_ALLOC) and section.name not in _ANY_BYTES and section.has_bytes
