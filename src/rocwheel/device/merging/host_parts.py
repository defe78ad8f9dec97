"""Whether two ELF files are the same for the host: build ids and device code aside.

A linker puts device code between other sections, so that its size moves what follows, and with it every address in the
code. So files whose device code has another size are compared by what addresses don't change: their sections, the
dynamic symbols' names and versions, and the number of units of device code.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.elf.bytes import ElfBytes
from rocwheel.binary.elf.header import read_header
from rocwheel.binary.elf.sections import SHT_NOBITS, Section, read_section_table
from rocwheel.binary.kind import is_elf64
from rocwheel.foundation.files.file_view import iter_pieces

if TYPE_CHECKING:
    from rocwheel.foundation.files.file_view import Data

__all__ = ["HostDifference", "compare_host_parts"]

_DEVICE_SECTIONS = frozenset({".hip_fatbin", ".rocm_kpack_ref"})
_BUILD_ID = ".note.gnu.build-id"
_WITHOUT_ADDRESSES = frozenset(
    {".comment", ".dynstr", ".gnu.version", ".gnu.version_d", ".gnu.version_r", ".interp", ".rocm_kpack_ref"}
)
"""Sections whose bytes no address shows in; strings of the program are not among them, as jump tables lie beside."""


class HostDifference(enum.Enum):
    """How far two files of one path are from each other."""

    NONE = "none"
    BUILD_ID = "build id"
    DEVICE_CODE = "device code"
    HOST = "host part"


def compare_host_parts(one: Data, other: Data, *, name: str) -> HostDifference:
    """Return what two files of one path differ in, the worst of it.

    Raises `ElfError` and `DeviceCodeError`, led by ``name``, for damaged files.
    """
    if _same(one, other):
        return HostDifference.NONE
    if not (is_elf64(one) and is_elf64(other)):
        return HostDifference.HOST
    mine, theirs = _sections(one, name), _sections(other, name)
    if _shape(mine) != _shape(theirs):
        return HostDifference.HOST
    if _layout(mine) == _layout(theirs):
        return _compare_bytes(one, other, mine)
    if not _same_units(read_fat_binary(one, name=name), read_fat_binary(other, name=name)):
        return HostDifference.HOST
    return HostDifference.DEVICE_CODE if _same_texts(one, other, mine, theirs) else HostDifference.HOST


def _same(one: Data, other: Data) -> bool:
    return len(one) == len(other) and all(a == b for a, b in zip(iter_pieces(one), iter_pieces(other), strict=True))


def _sections(data: Data, name: str) -> tuple[Section, ...]:
    source = ElfBytes(data, name)
    return read_section_table(source, read_header(source))


def _shape(sections: tuple[Section, ...]) -> list[tuple[object, ...]]:
    """Return what of each section doesn't depend on the size of device code."""
    return [
        (section.name, section.type if section.name not in _DEVICE_SECTIONS else 0, section.flags, section.link)
        + (() if section.name in _DEVICE_SECTIONS else (section.size,))
        for section in sections
    ]


def _layout(sections: tuple[Section, ...]) -> list[tuple[object, ...]]:
    return [(section.type, section.address, section.offset, section.size) for section in sections]


def _compare_bytes(one: Data, other: Data, sections: tuple[Section, ...]) -> HostDifference:
    """Compare files of one layout: everything, with the build id and device code left out where they lie."""
    if len(one) != len(other):
        return HostDifference.HOST
    left_out = sorted(
        (section.offset, section.offset + section.size, section.name)
        for section in sections
        if section.name in {*_DEVICE_SECTIONS, _BUILD_ID} and section.type != SHT_NOBITS
    )
    found = HostDifference.BUILD_ID
    position = 0
    for start, stop, name in left_out:
        if not _same(one[position:start], other[position:start]):
            return HostDifference.HOST
        if name != _BUILD_ID and not _same(one[start:stop], other[start:stop]):
            found = HostDifference.DEVICE_CODE
        position = max(position, stop)
    return found if _same(one[position:], other[position:]) else HostDifference.HOST


def _same_units(one: FatBinary | None, other: FatBinary | None) -> bool:
    if one is None or other is None:
        return False
    return [(w.is_kpack, w.index) for w in one.wrappers] == [(w.is_kpack, w.index) for w in other.wrappers]


def _same_texts(one: Data, other: Data, mine: tuple[Section, ...], theirs: tuple[Section, ...]) -> bool:
    return all(
        _same(one[a.offset : a.offset + a.size], other[b.offset : b.offset + b.size])
        for a, b in zip(mine, theirs, strict=True)
        if a.name in _WITHOUT_ADDRESSES
    )
