"""Words of a section that has moved, beside a list of all words of it that may differ, made for each kind by itself."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from elftools.elf.enums import ENUM_D_TAG

from fuzz.harness import require
from rocwheel.binary.elf.sections import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_PROGBITS,
    SHT_RELA,
    Section,
)
from rocwheel.device.merging.moved_words import HowLoaded, are_same_but_moved
from rocwheel.device.merging.moves import Moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MOVED_SEEDS", "compare_moved_words"]


class _Kind(NamedTuple):
    name: str
    type: int = SHT_PROGBITS
    flags: int = 0


_KINDS = (
    _Kind(".dynsym", SHT_DYNSYM),
    _Kind(".rela.dyn", SHT_RELA),
    _Kind(".dynamic", SHT_DYNAMIC, SHF_WRITE),
    _Kind(".data", flags=SHF_WRITE),
    _Kind(".got", flags=SHF_WRITE),
    _Kind(".rodata"),
    _Kind(".text", flags=SHF_EXECINSTR),
    _Kind(".eh_frame"),
    _Kind(".gcc_except_table"),
    _Kind(".eh_frame_hdr"),
)
_UNALIGNED = {".text", ".eh_frame", ".gcc_except_table"}
_OLD, _STEP = 0x9000, 0x4000
"""Where the section was, and how far it has moved."""
_PLACES = ((0x1000, 0x1000, 0, SHF_EXECINSTR), (0x5000, 0x1000, 0x3000, SHF_WRITE))
"""Start, size, move and flags of other sections."""
_POINTERS = (
    *("DT_PLTGOT", "DT_HASH", "DT_STRTAB", "DT_SYMTAB", "DT_RELA", "DT_INIT", "DT_FINI", "DT_REL", "DT_JMPREL"),
    *("DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY", "DT_RELR", "DT_GNU_HASH", "DT_TLSDESC_PLT"),
    *("DT_TLSDESC_GOT", "DT_VERSYM", "DT_VERDEF", "DT_VERNEED"),
)
_POINTER_TAGS = {ENUM_D_TAG[name] for name in _POINTERS}
_EDIT = 4
"""Bytes of an input that say where a word is changed, and how."""
_MOVED, _MOVED_TOO, _OTHER = (8, 0, 0x80, 0), (32, 0, 0x84, 1), (28, 0, 2, 9)
_SHORT, _ADDEND = (12, 0, 1, 3), (16, 0, 4, 2)
MOVED_SEEDS = [
    bytes([kind, fixed, len(edits), *(value for edit in edits for value in edit)]) + body
    for kind in range(len(_KINDS))
    for fixed in (0, 1)
    for edits in ([_MOVED], [_MOVED_TOO], [_MOVED, _MOVED_TOO, _OTHER], [_SHORT], [_ADDEND])
    for body in (bytes(96), struct.pack("<QQQQQQ", 5, 0, 6, 0, 7, 0))
]


def compare_moved_words(data: bytes) -> None:
    """Change words of an input as its first bytes say, and require that only those may differ which have moved."""
    if len(data) < 3:
        return
    kind, edits, start = _KINDS[data[0] % len(_KINDS)], data[2] % 9, 3
    start += edits * _EDIT
    one, other = bytearray(data[start:]), bytearray(data[start:])
    relocated = {_OLD + at for at in _change(one, other, data[3:start])}
    sections = _Sections(kind, bytes(one), bytes(other), frozenset(relocated), is_fixed=data[1] % 2 == 1)
    found, words = sections.are_same(), sorted(sections.moved_words())
    expected = _is_covered(sections.one, sections.other, words)
    require(expected or not found, f"{kind.name}: a word that may not differ does")
    # One word is chosen of those that overlap, which may be in the way of the next: it says too little then.
    require(found or not expected or _overlap(words), f"{kind.name}: all words may differ that do")


def _change(one: bytearray, other: bytearray, edits: bytes) -> Iterator[int]:
    """Put words that have moved, and some that haven't, into two sections; yield which the loader relocates."""
    for at, how, low in struct.iter_unpack("<HBB", edits[: len(edits) // _EDIT * _EDIT]):
        start, _, step, _ = (*_PLACES, (_OLD, 0, _STEP, 0))[(how >> 2) % 3]
        old, new = start + low, start + low + step + (how & 3 == 3)
        if how & 3 == 1:
            words = [
                struct.pack("<I", (to - base - at) & 0xFFFFFFFF) for to, base in ((old, _OLD), (new, _OLD + _STEP))
            ]
        else:
            words = [struct.pack("<Q", to) for to in ((old, new) if how & 3 != 2 else (low, low ^ 1))]
        if at + len(words[0]) <= len(one):
            one[at : at + len(words[0])], other[at : at + len(words[0])] = words
        if how & 0x80:
            yield at


class _Sections(NamedTuple):
    """One section in two files, and how it is loaded."""

    kind: _Kind
    one: bytes
    other: bytes
    relocated: frozenset[int]
    is_fixed: bool

    def are_same(self) -> bool:
        """Ask the code under test."""
        places = [*_PLACES, (_OLD, len(self.one), _STEP, self.kind.flags)]
        pairs = [(_section(a, size, flags), _section(a + step, size, flags)) for a, size, step, flags in places]
        own, theirs = (
            msgspec.structs.replace(section, name=self.kind.name, type=self.kind.type) for section in pairs[-1]
        )
        moves, loaded = Moves(pairs, ()), HowLoaded(self.is_fixed, self.relocated)
        return are_same_but_moved(memoryview(self.one), memoryview(self.other), (own, theirs), moves, loaded)

    def moved_words(self) -> Iterator[tuple[int, int]]:
        """Yield place and size of each word whose kind of place may hold an address that has moved."""
        for size, places in ((8, self._long_places()), (4, self._short_places())):
            for at in set(places):
                if 0 <= at <= len(self.one) - size and self._has_moved(at, size):
                    yield at, size

    def _long_places(self) -> Iterable[int]:
        size, name = len(self.one), self.kind.name
        if name == ".dynsym":
            return range(8, size, 24)
        if name == ".rela.dyn":
            without_symbol = (at for at in range(16, size, 24) if self.one[at - 4 : at] == bytes(4))
            return [*range(0, size, 24), *without_symbol]
        if name == ".dynamic":
            tags = struct.iter_unpack("<Qq", self.one[: size // 16 * 16])
            return [row * 16 + 8 for row, (tag, _) in enumerate(tags) if tag in _POINTER_TAGS]
        aligned = range(0, size, 8)
        if name in {".data", ".got"}:
            is_any = self.is_fixed or name == ".got"
            return [*(at - _OLD for at in self.relocated), *(aligned if is_any else ())]
        return aligned if self.is_fixed else ()

    def _short_places(self) -> Iterable[int]:
        if self.kind.type != SHT_PROGBITS or self.kind.flags & SHF_WRITE:
            return ()
        return range(0, len(self.one), 1 if self.kind.name in _UNALIGNED else 4)

    def _has_moved(self, at: int, size: int) -> bool:
        name = self.kind.name
        layout, margin = ("<Q" if size == 8 else "<I"), 64 * (name == ".text")
        old, new = (struct.unpack_from(layout, data, at)[0] for data in (self.one, self.other))
        if (size == 8 or self.is_fixed) and self._leads_to_the_same(old, new, margin, is_code=False):
            return True
        if size == 8:
            return False
        base = 0 if name == ".eh_frame_hdr" and at != 4 else at
        old, new = (struct.unpack_from("<i", data, at)[0] + base for data in (self.one, self.other))
        is_code = name == ".rodata"
        return self._leads_to_the_same(old + _OLD, new + _OLD + _STEP, 4096 if is_code else margin, is_code=is_code)

    def _leads_to_the_same(self, old: int, new: int, margin: int, *, is_code: bool) -> bool:
        return any(
            new - old == step and start - margin <= old <= start + size + margin
            for start, size, step, flags in (*_PLACES, (_OLD, len(self.one), _STEP, self.kind.flags))
            if flags & SHF_EXECINSTR or not is_code
        )


def _section(address: int, size: int, flags: int) -> Section:
    return Section("", 0, SHT_PROGBITS, SHF_ALLOC | flags, address, 0, size, 0, 0, 1, 0)


def _overlap(words: list[tuple[int, int]]) -> bool:
    return any(at + size > behind for (at, size), (behind, _) in pairwise(words))


def _is_covered(one: bytes, other: bytes, words: list[tuple[int, int]]) -> bool:
    """Return whether words that don't overlap have all bytes that differ."""
    different = [at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    waiting, seen = [0], {0}
    while waiting:
        begin = waiting.pop()
        first = next((at for at in different if at >= begin), None)
        if first is None:
            return True
        ends = {at + size for at, size in words if begin <= at <= first < at + size}
        waiting += ends - seen
        seen |= ends
    return False
