"""Collects changes to an ELF file, namely section tables and writes that must not overlap, into one patch.

dwz and other tools require that the headers of loaded sections precede all other headers. References to a section by
its number are updated: ``sh_link``, ``sh_info``, the number of the section name table, and symbols.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.header import (
    E_SHNUM,
    E_SHOFF,
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_RELA,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    ElfBytes,
    ElfError,
    ElfSection,
)
from rocwheel.binary.elf.symbols import iter_symbol_rows
from rocwheel.core.patch import FilePatch, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.elf.header import ElfBytes


class PatchWriter:
    """Collects writes to an ELF file and beyond its end, and drops writes that don't change anything."""

    def __init__(self, source: ElfBytes) -> None:
        self._source = source
        self._writes: list[Replacement] = []

    def write(self, offset: int, data: bytes) -> None:
        """Set the bytes at ``offset``; the write must not overlap other writes."""
        inside = max(min(len(data), self._source.size - offset), 0)
        if len(data) > inside or (inside and data != self._source.read(offset, inside, "a changed part")):
            self._writes.append(Replacement.of(offset, data))

    def write_rows(self, offset: int, table: bytes, size: int) -> None:
        """Set a table of rows of ``size`` bytes each; unchanged rows add nothing to the patch."""
        inside = max(min(len(table), self._source.size - offset), 0)
        old = self._source.read(offset, inside, "a changed table") if inside else b""
        if not old:
            self._writes.append(Replacement.of(offset, table))
        elif old != table:
            rows = ((start, table[start : start + size]) for start in range(0, len(table), size))
            self._writes += [
                Replacement.of(offset + start, row) for start, row in rows if row != old[start : start + size]
            ]

    def patch(self) -> FilePatch:
        """Return the collected writes as one patch; raise `ElfError` if two writes overlap."""
        size = max([self._source.size, *(write.stop for write in self._writes)])
        return patch_of_writes(self._writes, size, name=self._source.name)


def patch_of_writes(writes: Iterable[Replacement], size: int, *, name: str) -> FilePatch:
    """Return the patch that applies ``writes``, in any order, and produces a file of ``size`` bytes.

    Raises `ElfError` for the file ``name`` if two writes overlap.
    """
    ordered = tuple(sorted(writes, key=lambda write: write.start))
    require_apart(((write.start, write.stop) for write in ordered), name=name)
    return FilePatch(size, ordered)


def require_apart(ranges: Iterable[tuple[int, int]], *, name: str) -> None:
    """Raise `ElfError` if two ranges overlap; the ranges are pairs of start and end, in ascending order."""
    if any(end > start for (_, end), (start, _) in pairwise(ranges)):
        raise ElfError(name, "tables that overlap", expected="tables that don't overlap")


_NUMBER: Final = Struct("<H")
_OFFSET: Final = Struct("<Q")
_COUNTS: Final = Struct("<HH")
_SHF_INFO_LINK = 0x40
_SHT_REL, _SHT_GROUP = 9, 17
_SYMBOL_SECTION_AT = 6
_RESERVED = 0xFF00


class SectionTable(msgspec.Struct, frozen=True):
    """Section headers in their new order, where references still have the old numbers.

    ``numbers`` maps each section's old number to its new number; it omits removed sections.
    """

    sections: tuple[ElfSection, ...]
    numbers: dict[int, int]
    names: int
    """The old number of the section that contains the section names."""

    def pack(self) -> bytes:
        """Return the table with the new numbers."""
        return b"".join(self._renumbered(section).pack() for section in self.sections)

    def header(self, offset: int) -> Iterator[Replacement]:
        """Yield the ELF header fields for a table at the file offset ``offset``."""
        yield Replacement.of(E_SHOFF, _OFFSET.pack(offset))
        yield Replacement.of(E_SHNUM, _COUNTS.pack(len(self.sections), self.numbers[self.names]))

    def _renumbered(self, section: ElfSection) -> ElfSection:
        link = self.numbers.get(section.link, 0)
        has_number = section.type in {SHT_RELA, _SHT_REL} or section.flags & _SHF_INFO_LINK
        info = self.numbers.get(section.info, 0) if has_number else section.info
        return msgspec.structs.replace(section, link=link, info=info)

    def symbols(self, source: ElfBytes, sections: Sequence[ElfSection]) -> Iterator[Replacement]:
        """Yield the new section numbers for symbols, at old file offsets; ``sections`` are the old headers."""
        if all(old == new for old, new in self.numbers.items()):
            return
        for table in sections:
            if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
                for at, (_, _, _, number, _, _) in iter_symbol_rows(source, table):
                    if number < _RESERVED and self.numbers.get(number, number) != number:
                        yield Replacement.of(at + _SYMBOL_SECTION_AT, _NUMBER.pack(self.numbers[number]))


def order_sections(
    sections: Sequence[ElfSection], names: int, *, added: Sequence[ElfSection] = (), gone: Sequence[ElfSection] = ()
) -> SectionTable:
    """Return loaded sections first, then the sections in ``added``, which are also loaded, and then other sections.

    Otherwise, the order doesn't change. The sections in ``gone`` are omitted.
    """
    kept = [number for number, section in enumerate(sections) if section not in gone]
    loaded = [number for number in kept if number == 0 or sections[number].flags & SHF_ALLOC]
    others = sorted(set(kept) - set(loaded))
    new = [*(sections[number] for number in loaded), *added, *(sections[number] for number in others)]
    numbers = {old: place for place, old in enumerate(loaded)}
    numbers |= {old: len(loaded) + len(added) + place for place, old in enumerate(others)}
    return SectionTable(tuple(new), numbers, names)


def require_plain_numbers(source: ElfBytes, sections: Sequence[ElfSection]) -> None:
    """Raise `ElfError` if a file has section groups or too many sections, so that its sections can't be renumbered."""
    if len(sections) + 1 >= _RESERVED or any(s.type in {SHT_SYMTAB_SHNDX, _SHT_GROUP} for s in sections):
        raise ElfError(source.name, f"{len(sections)} sections, or section groups", expected="a linked file")
