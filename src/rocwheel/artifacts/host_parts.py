"""Compares the host parts of two ELF files, ignoring build IDs, device code, and words that differ only due to moves.

If a part of a file grows, everything after it moves. The contents of a section move together. If the size of a section
changed, only the new positions of its start and end and of the targets of wrappers are known.

A word is treated as an address only where a linker or compiler puts addresses: in table fields, in pointers that the
loader relocates, and in instructions and read-only tables, which use offsets from their own position. A program that is
always loaded at its link address can have addresses anywhere.

A linker puts device code between other sections. So the size of the device code determines the addresses of later
sections, and these addresses also appear in the code. Files with the same layout are compared byte by byte. In other
files, only loaded sections are compared. Words in these sections may differ if they are addresses of something that
moved.
"""

from __future__ import annotations

import enum
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.elf.header import (
    ET_EXEC,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_RELA,
    ElfBytes,
    ElfSection,
    read_header,
    read_section_table,
)
from rocwheel.binary.elf.relocations import iter_relocated
from rocwheel.binary.kind import is_elf64
from rocwheel.binary.kpack.markers import MARKER_SECTION, read_split_library
from rocwheel.core.reading import have_same_bytes, iter_pieces, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.elf.header import ElfSection, Header
    from rocwheel.core.reading import Data


class _Region(NamedTuple):
    """Consecutive sections that moved by the same number of bytes."""

    start: int
    stop: int
    step: int
    is_code: bool


class Moves:
    """Represents the movements of ``pairs`` of sections and of ``points``, which are pairs of old and new addresses."""

    def __init__(self, pairs: Sequence[tuple[ElfSection, ElfSection]], points: Iterable[tuple[int, int]]) -> None:
        loaded = [(a, b) for a, b in pairs if _has_address(a)]
        self._regions = list(_regions([(a, b) for a, b in loaded if a.size == b.size]))
        ends = ((a.address + a.size, b.address + b.size) for a, b in loaded)
        self._points = {*points, *ends, *((a.address, b.address) for a, b in loaded)}

    def has(self, old: int, new: int, *, margin: int = 0, is_code: bool = False) -> bool:
        """Return whether the content at ``old`` in one file is at ``new`` in the other file.

        An address is treated as part of a section if it is at most ``margin`` bytes away, because addresses in
        instructions and tables are often slightly off. With ``is_code``, only sections with instructions are
        considered.
        """
        if not is_code and (old, new) in self._points:
            return True
        step = new - old
        return any(
            region.step == step and region.start - margin <= old <= region.stop + margin
            for region in self._regions
            if region.is_code or not is_code
        )


def _has_address(section: ElfSection) -> bool:
    """Return whether a section has an address range of its own.

    Zero-filled thread data shares the addresses of the next section.
    """
    return bool(section.flags & SHF_ALLOC) and not (section.flags & SHF_TLS and section.type == SHT_NOBITS)


def _regions(pairs: Sequence[tuple[ElfSection, ElfSection]]) -> Iterator[_Region]:
    ordered = sorted(pairs, key=lambda pair: pair[0].address)
    kinds = groupby(ordered, lambda pair: (pair[1].address - pair[0].address, bool(pair[0].flags & SHF_EXECINSTR)))
    for (step, is_code), group in kinds:
        sections = [a for a, _ in group]
        yield _Region(sections[0].address, max(a.address + a.size for a in sections), step, is_code)


_BLOCK = 64


class RelocatedWord(Protocol):
    """Finds the word at a position if the word may differ."""

    def __call__(self, at: int, start: int) -> int | None:
        """Return the end of the word that contains the byte ``at`` and begins at ``start`` or later, or `None`.

        All values are offsets in the section.
        """


def is_same_but_moved(one: Data, other: Data, behind_word: RelocatedWord) -> bool:
    """Return whether two sections of the same size differ only in words that ``behind_word`` accepts."""
    if len(one) != len(other):
        return False
    base = end = 0
    for mine, theirs in zip(iter_pieces(one), iter_pieces(other), strict=True):
        a, b = bytes(mine), bytes(theirs)
        while (at := _next_difference(a, b, max(end - base, 0))) < len(a):
            behind = behind_word(base + at, end)
            if behind is None:
                return False
            end = behind
        base += len(a)
    return True


def _next_difference(one: bytes, other: bytes, start: int) -> int:
    """Return the offset of the next difference, or the size if there is no difference."""
    size = len(one)
    for block in range(start, size, _BLOCK):
        mine, theirs = one[block : block + _BLOCK], other[block : block + _BLOCK]
        if mine != theirs:
            bits = int.from_bytes(mine, "little") ^ int.from_bytes(theirs, "little")
            return block + ((bits & -bits).bit_length() - 1) // 8
    return size


_SHORT, _LONG = 4, 8
_FIELDS: Final = {SHT_DYNSYM: (24, (8,)), SHT_RELA: (24, (0, 16)), SHT_DYNAMIC: (16, (8,))}
"""The size of a table row, and the offsets of addresses in it."""
_SYMBOL_AT = 12
"""The offset of the symbol number in a relocation. If there is a symbol, the addend is not an address."""
_ADDEND_AT = 16
_POINTER_TAGS = frozenset(
    {3, 4, 5, 6, 7, 12, 13, 17, 23, 25, 26, 32, 36}
    | {0x6FFFFEF5, 0x6FFFFEF6, 0x6FFFFEF7, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE}
)
"""The tags of addresses in the dynamic table: see https://gabi.xinuos.com/elf/08-dynamic.html, and GNU's tags."""
_TABLES_OF_LINKER = frozenset({".got", ".got.plt"})
"""Sections whose first entry is the address of the dynamic table, which has no relocation."""
_UNWINDING = ".eh_frame"
_UNWINDING_INDEX = ".eh_frame_hdr"
"""A section whose values are relative to its own start. Only the section address at offset 4 is relative to itself."""
_EXCEPTIONS = ".gcc_except_table"
_NEAR = 64
"""The maximum distance between a section and an address in an instruction, in bytes.

Such an address is relative to the end of the instruction, or has an index subtracted.
"""
_TABLE_SIZE = 4096
"""The maximum size of a jump table. Its offsets are relative to its start, so entries' targets appear to be shifted."""


class HowLoaded(msgspec.Struct, frozen=True):
    """Information about the addresses in a library that must be adjusted when it is loaded."""

    is_fixed: bool
    """Whether the file is always loaded at its link address."""

    relocated: frozenset[int]
    """The addresses of the pointers that the loader relocates."""


def how_loaded(source: ElfBytes, header: Header, sections: Sequence[ElfSection]) -> HowLoaded:
    """Return how a library is loaded. Raises `ElfError` for damaged relocations."""
    return HowLoaded(header.type == ET_EXEC, frozenset(iter_relocated(source, sections)))


def are_same_but_moved(
    one: Data, other: Data, pair: tuple[ElfSection, ElfSection], moves: Moves, loaded: HowLoaded
) -> bool:
    """Return whether the section ``pair`` of the files ``one`` and ``other`` differs only in moved addresses."""
    mine, theirs = (data[s.offset : s.offset + s.size] for data, s in zip((one, other), pair, strict=True))
    words = _Words(mine, theirs, pair, moves, loaded)
    return is_same_but_moved(mine, theirs, words.behind)


class _Words:
    """The words of a section that may differ. Positions are offsets in the section."""

    def __init__(
        self, one: Data, other: Data, pair: tuple[ElfSection, ElfSection], moves: Moves, loaded: HowLoaded
    ) -> None:
        self._one, self._other = one, other
        self._old, self._new = pair[0].address, pair[1].address
        self._section, self._moves, self._loaded = pair[0], moves, loaded

    def behind(self, at: int, start: int) -> int | None:
        """Return the end of the word that contains the byte ``at``. Implements `RelocatedWord`."""
        for word, size in self._candidates(at):
            if word >= start and word + size <= len(self._one) and self._is_moved(word, size):
                return word + size
        return None

    def _candidates(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield the start and size of each word that contains the byte ``at`` and may be an address."""
        section = self._section
        if section.type in _FIELDS:
            yield from self._fields(at)
        elif section.flags & SHF_WRITE:
            yield from ((word, _LONG) for word in range(max(at - _LONG + 1, 0), at + 1) if self._is_relocated(word))
        elif section.type == SHT_PROGBITS:
            if self._loaded.is_fixed:
                yield at - at % _LONG, _LONG
            is_free = section.flags & SHF_EXECINSTR or section.name in {_UNWINDING, _EXCEPTIONS}
            last, first = (at, max(at - _SHORT + 1, 0)) if is_free else (at - at % _SHORT,) * 2
            yield from ((word, _SHORT) for word in range(last, first - 1, -1))

    def _fields(self, at: int) -> Iterator[tuple[int, int]]:
        size, places = _FIELDS[self._section.type]
        row = at - at % size
        for place in places:
            if place <= at - row < place + _LONG and self._is_address(row, place):
                yield row + place, _LONG

    def _is_address(self, row: int, place: int) -> bool:
        kind = self._section.type
        if kind == SHT_DYNAMIC:
            return self._read(self._one, row, _LONG) in _POINTER_TAGS
        return kind != SHT_RELA or place != _ADDEND_AT or self._read(self._one, row + _SYMBOL_AT, _SHORT) == 0

    def _is_relocated(self, word: int) -> bool:
        is_free = self._loaded.is_fixed or self._section.name in _TABLES_OF_LINKER
        return (is_free and word % _LONG == 0) or self._old + word in self._loaded.relocated

    def _is_moved(self, word: int, size: int) -> bool:
        """Return whether the target of a word has moved, for each way that the section stores addresses."""
        old, new = (self._read(data, word, size) for data in (self._one, self._other))
        section, moves = self._section, self._moves
        if size == _LONG or self._loaded.is_fixed:
            if moves.has(old, new, margin=_NEAR if section.flags & SHF_EXECINSTR else 0):
                return True
            if size == _LONG:
                return False
        from_start = section.name == _UNWINDING_INDEX and word != _SHORT
        base = 0 if from_start else word
        old, new = self._old + base + _signed(old), self._new + base + _signed(new)
        if section.flags & SHF_EXECINSTR:
            return moves.has(old, new, margin=_NEAR)
        if section.name in {_UNWINDING, _UNWINDING_INDEX, _EXCEPTIONS}:
            return moves.has(old, new)
        return moves.has(old, new, margin=_TABLE_SIZE, is_code=True)

    def _read(self, data: Data, start: int, size: int) -> int:
        return int.from_bytes(load(data[start : start + size]), "little")


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


_CODE = ".hip_fatbin"
_BUILD_ID = ".note.gnu.build-id"
_RELATIVE = ".relr.dyn"
"""A section that represents addresses as bits in a bitmap. The number of bits depends on the layout.

The values at these addresses are compared instead.
"""
_DEBUG_LINK = ".gnu_debuglink"
"""A section with the checksum of another file."""
_ANY_SIZE = frozenset({_CODE, _RELATIVE, MARKER_SECTION})
"""Sections that may have any size. Markers are compared by meaning, because commands that join a library use them."""
_ANY_BYTES = _ANY_SIZE | {_BUILD_ID, _DEBUG_LINK}


class HostDifference(enum.Enum):
    """The kind of difference between two files with the same path."""

    NONE = "none"
    BUILD_ID = "build id"
    LAYOUT = "space of device code"
    """The device code is at a different position, or the space for it has a different size."""
    DEVICE_CODE = "device code"
    HOST = "host part"


def compare_host_parts(one: Data, other: Data, *, name: str) -> HostDifference:
    """Return the most significant difference between two files with the same path.

    Raises `ElfError` or `DeviceCodeError` about ``name`` for damaged files.
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


def _compare_sections(
    one: Data, other: Data, pairs: Sequence[tuple[ElfSection, ElfSection]], name: str
) -> HostDifference:
    """Compare files whose sections have different positions."""
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
    """Return the names and paths that a runtime looks up for the wrappers of a split library; empty for other files."""
    split = read_split_library(data, name=name)
    units = split.units if split else ()
    return [(unit.index, unit.marker.kernel_name, unit.marker.search_paths) for unit in units]


def _sections(data: Data, name: str) -> tuple[ElfSection, ...]:
    source = ElfBytes(data, name)
    return read_section_table(source, read_header(source))


def _shape(sections: Sequence[ElfSection]) -> list[tuple[object, ...]]:
    """Return the properties of each section that don't depend on the size of device code."""
    return [
        (section.name, section.type, section.flags, section.link, section.size if _has_size(section) else 0)
        for section in sections
    ]


def _has_size(section: ElfSection) -> bool:
    """Return whether the size of a section depends only on the program.

    That is not true for debug tables, because they contain names of temporary files.
    """
    return bool(section.flags & SHF_ALLOC) and section.name not in _ANY_SIZE


def _layout(sections: Sequence[ElfSection]) -> list[tuple[int, ...]]:
    return [(section.address, section.offset, section.size) for section in sections]


def _compare_bytes(one: Data, other: Data, sections: Sequence[ElfSection]) -> HostDifference:
    """Compare files with the same layout. All bytes are compared, except in sections that may have any content."""
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
    """Return the targets of the wrappers in both files. They move independently, because they follow earlier units."""
    return [(a.pointer.target, b.pointer.target) for a, b in zip(one.wrappers, other.wrappers, strict=True)]


def _is_compared(section: ElfSection) -> bool:
    return bool(section.flags & SHF_ALLOC) and section.name not in _ANY_BYTES and section.has_bytes
