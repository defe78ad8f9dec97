"""The words of a section that differ only because what they point to has moved.

A word is taken for an address only where a linker or compiler puts one: in the fields of tables, where the loader
relocates a pointer, and in instructions and read-only tables, which count from their own place. In programs that are
loaded where they were linked, addresses stand everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.header import ET_EXEC
from rocwheel.binary.elf.relocations import iter_relocated
from rocwheel.binary.elf.sections import (
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_PROGBITS,
    SHT_RELA,
    Section,
)
from rocwheel.core.reading import load
from rocwheel.device.merging.moved_bytes import is_same_but_moved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.elf.header import Header
    from rocwheel.core.reading import Data
    from rocwheel.device.merging.moves import Moves

__all__ = ["HowLoaded", "are_same_but_moved", "how_loaded"]

_SHORT, _LONG = 4, 8
_FIELDS: Final = {SHT_DYNSYM: (24, (8,)), SHT_RELA: (24, (0, 16)), SHT_DYNAMIC: (16, (8,))}
"""The size of a row of a table, and where in a row addresses are."""
_SYMBOL_AT = 12
"""Where a relocation has the number of its symbol; with one, its addend is no address."""
_ADDEND_AT = 16
_POINTER_TAGS = frozenset(
    {3, 4, 5, 6, 7, 12, 13, 17, 23, 25, 26, 32, 36}
    | {0x6FFFFEF5, 0x6FFFFEF6, 0x6FFFFEF7, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE}
)
"""Entries of the dynamic table that are addresses: those of https://gabi.xinuos.com/elf/08-dynamic.html, and GNU's."""
_TABLES_OF_LINKER = frozenset({".got", ".got.plt"})
"""The first entry is the address of the dynamic table, which has no relocation."""
_UNWINDING = ".eh_frame"
_UNWINDING_INDEX = ".eh_frame_hdr"
"""Counts from its own start, but for the address of the other, at 4, which counts from there."""
_EXCEPTIONS = ".gcc_except_table"
_NEAR = 64
"""How far from a section an instruction's address may be: it counts from the end of the instruction, or has an index
taken off."""
_TABLE_SIZE = 4096
"""Offsets in a table of jumps count from its start, so that an entry's target seems as far away as the entry is."""


class HowLoaded(msgspec.Struct, frozen=True):
    """Where a library has addresses that have to be put right when it is loaded."""

    is_fixed: bool
    """Whether it is loaded where it was linked."""

    relocated: frozenset[int]
    """The addresses of its pointers that the loader relocates."""


def how_loaded(source: ElfBytes, header: Header, sections: Sequence[Section]) -> HowLoaded:
    """Return how the library is loaded; raise `ElfError` for damaged relocations."""
    return HowLoaded(header.type == ET_EXEC, frozenset(iter_relocated(source, sections)))


def are_same_but_moved(one: Data, other: Data, pair: tuple[Section, Section], moves: Moves, loaded: HowLoaded) -> bool:
    """Return whether a section, in the files ``one`` and ``other``, differs in nothing but addresses of ``moves``."""
    mine, theirs = (data[s.offset : s.offset + s.size] for data, s in zip((one, other), pair, strict=True))
    words = _Words(mine, theirs, pair, moves, loaded)
    return is_same_but_moved(mine, theirs, words.behind)


class _Words:
    """The words of a section that may differ; offsets are in the section."""

    def __init__(self, one: Data, other: Data, pair: tuple[Section, Section], moves: Moves, loaded: HowLoaded) -> None:
        self._one, self._other = one, other
        self._old, self._new = pair[0].address, pair[1].address
        self._section, self._moves, self._loaded = pair[0], moves, loaded

    def behind(self, at: int, start: int) -> int | None:
        """Return what follows the word with the byte ``at``, as `is_same_but_moved` asks for it."""
        for word, size in self._candidates(at):
            if word >= start and word + size <= len(self._one) and self._is_moved(word, size):
                return word + size
        return None

    def _candidates(self, at: int) -> Iterator[tuple[int, int]]:
        """Yield the words with the byte ``at`` that may be addresses, and their sizes."""
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
        """Return whether what a word is the address of, in one of the ways of its section, has moved."""
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
