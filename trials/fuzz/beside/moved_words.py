"""Words of a section that has moved, beside a list of all words of it that may differ, made for each kind by itself."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from elftools.elf.enums import ENUM_D_TAG

from rocwheel.artifacts.host_parts import HowLoaded, Moves, are_same_but_moved
from rocwheel.binary.elf.header import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_PROGBITS,
    SHT_RELA,
    ElfSection,
)
from trials.fuzz.beside.moved_edits import DISTANCE, EDIT, NEW, NUMBER, OLD, OTHERS, Edit, Place
from trials.fuzz.harness import require

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
_POINTERS = (
    *("DT_PLTGOT", "DT_HASH", "DT_STRTAB", "DT_SYMTAB", "DT_RELA", "DT_INIT", "DT_FINI", "DT_REL", "DT_JMPREL"),
    *("DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY", "DT_RELR", "DT_GNU_HASH", "DT_TLSDESC_PLT"),
    *("DT_TLSDESC_GOT", "DT_VERSYM", "DT_VERDEF", "DT_VERNEED"),
)
_POINTER_TAGS = {ENUM_D_TAG[name] for name in _POINTERS}
_EDITS = (
    [Edit(8, is_relocated=True)],
    [Edit(32, place=3, is_relocated=True, distance=1)],
    [Edit(8, place=1), Edit(24, place=3, distance=1), Edit(28, way=NUMBER)],
    [Edit(12, way=DISTANCE, distance=3)],
    [Edit(16, place=1, distance=2)],
    [Edit(8, place=2, is_end=True), Edit(40, place=2)],
    *([Edit(8, place=place, is_end=True, distance=far)] for place in (0, 1) for far in (64, 65, -1)),
    *([Edit(8, way=DISTANCE, is_end=True, distance=far)] for far in (64, 65)),
    *([Edit(8, way=DISTANCE, is_end=True, is_far=True, distance=far)] for far in (124, 125)),
)
_TAGS = (*sorted(_POINTER_TAGS), 1, 2, 14, 30)
"""Those of pointers, and some of sizes, strings and flags."""
_BODIES = {
    SHT_DYNAMIC: [struct.pack("<QQQQQQ", tag, 0, tag, 0, tag, 0) for tag in _TAGS],
    SHT_RELA: [struct.pack("<QIIQ", 0, 8, symbol, 0) * 2 for symbol in (0, 1)],
}


def _seeds() -> Iterator[bytes]:
    for kind, one in enumerate(_KINDS):
        for body in (bytes(96), *_BODIES.get(one.type, [])):
            for is_fixed in (False, True):
                yield from (_input(kind, is_fixed, edits, body) for edits in _EDITS)


def _input(kind: int, is_fixed: bool, edits: list[Edit], body: bytes) -> bytes:
    return bytes([kind, is_fixed, len(edits)]) + b"".join(edit.pack() for edit in edits) + body


MOVED_SEEDS = [*_seeds()]


def compare_moved_words(data: bytes) -> None:
    """Change words of an input as its first bytes say, and require that only those may differ which have moved."""
    if len(data) < 3:
        return
    kind, start = _KINDS[data[0] % len(_KINDS)], 3 + EDIT.size * (data[2] % 9)
    edits = [Edit.parse(raw) for raw in _cut(data[3:start])]
    sections = _edited(kind, data[start:], edits, is_fixed=data[1] % 2 == 1)
    found, words = sections.are_same(), sorted(sections.moved_words())
    expected = _is_covered(sections.one, sections.other, words)
    require(expected or not found, f"{kind.name}: a word that may not differ does")
    # One word is chosen of those that overlap, which may be in the way of the next: it says too little then.
    require(found or not expected or sections.overlap(words), f"{kind.name}: all words may differ that do")


def _cut(data: bytes) -> list[bytes]:
    size = EDIT.size
    return [data[at : at + size] for at in range(0, len(data) // size * size, size)]


def _edited(kind: _Kind, body: bytes, edits: list[Edit], *, is_fixed: bool) -> _Sections:
    """Return a section and one in which words differ."""
    one, other = bytearray(body), bytearray(body)
    own = Place(OLD, len(body), NEW, len(body), kind.flags)
    for edit in edits:
        mine, theirs = edit.words((*OTHERS, own))
        if edit.at + len(mine) <= len(body):
            one[edit.at : edit.at + len(mine)], other[edit.at : edit.at + len(mine)] = mine, theirs
    relocated = frozenset(OLD + edit.at for edit in edits if edit.is_relocated)
    return _Sections(kind, bytes(one), bytes(other), relocated, is_fixed)


class _Sections(NamedTuple):
    """One section in two files, and how it is loaded."""

    kind: _Kind
    one: bytes
    other: bytes
    relocated: frozenset[int]
    is_fixed: bool

    @property
    def places(self) -> tuple[Place, ...]:
        """Where all sections are, this one last."""
        return (*OTHERS, Place(OLD, len(self.one), NEW, len(self.one), self.kind.flags))

    def are_same(self) -> bool:
        """Ask the code under test."""
        pairs = [(_section(a.start, a.size, a.flags), _section(a.new_start, a.new_size, a.flags)) for a in self.places]
        own, theirs = (
            msgspec.structs.replace(section, name=self.kind.name, type=self.kind.type) for section in pairs[-1]
        )
        moves, loaded = Moves(pairs, ()), HowLoaded(self.is_fixed, self.relocated)
        return are_same_but_moved(memoryview(self.one), memoryview(self.other), (own, theirs), moves, loaded)

    def overlap(self, words: list[tuple[int, int]]) -> bool:
        """Return whether words overlap where the sections differ."""
        at_fault = [(at, size) for at, size in words if self.one[at : at + size] != self.other[at : at + size]]
        return any(at + size > behind for (at, size), (behind, _) in pairwise(at_fault))

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
            return [*(at - OLD for at in self.relocated), *(aligned if is_any else ())]
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
        return self._leads_to_the_same(old + OLD, new + NEW, 4096 if is_code else margin, is_code=is_code)

    def _leads_to_the_same(self, old: int, new: int, margin: int, *, is_code: bool) -> bool:
        if not is_code and any((old, new) in place.ends for place in self.places):
            return True
        return any(
            new - old == place.new_start - place.start
            and place.start - margin <= old <= place.start + place.size + margin
            for place in self.places
            if place.size == place.new_size and (place.flags & SHF_EXECINSTR or not is_code)
        )


def _section(address: int, size: int, flags: int) -> ElfSection:
    return ElfSection("", 0, SHT_PROGBITS, SHF_ALLOC | flags, address, 0, size, 0, 0, 1, 0)


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
