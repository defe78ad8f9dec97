"""A changed table of section headers: new ones put in or old ones taken out, loaded ones first (gABI, "Sections").

dwz and others expect the headers of loaded sections before those of all others. What refers to a section by its number
is changed with it: ``sh_link``, ``sh_info``, the number of the section names, and symbols.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.bytes import ElfBytes, ElfError
from rocwheel.binary.elf.header import E_SHNUM, E_SHOFF
from rocwheel.binary.elf.sections import (
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_RELA,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    Section,
)
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT
from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SectionTable", "order_sections", "require_plain_numbers"]

_NUMBER: Final = Struct("<H")
_OFFSET: Final = Struct("<Q")
_COUNTS: Final = Struct("<HH")
_SHF_INFO_LINK = 0x40
_SHT_REL, _SHT_GROUP = 9, 17
_SYMBOL_SECTION_AT = 6
_RESERVED = 0xFF00


class SectionTable(msgspec.Struct, frozen=True):
    """Section headers in their new order, as yet with old numbers in them.

    ``numbers`` leads from the old number of a section to the new one; those that go are not in it.
    """

    sections: tuple[Section, ...]
    numbers: dict[int, int]
    names: int
    """The old number of the section with the names."""

    @property
    def is_renumbered(self) -> bool:
        """Whether any section that stays has another number."""
        return any(old != new for old, new in self.numbers.items())

    def pack(self) -> bytes:
        """Return the table, with new numbers."""
        return b"".join(self._renumbered(section).pack() for section in self.sections)

    def header(self, offset: int) -> Iterator[Replacement]:
        """Yield the fields of the ELF header for a table at the file offset ``offset``."""
        yield Replacement.of(E_SHOFF, _OFFSET.pack(offset))
        yield Replacement.of(E_SHNUM, _COUNTS.pack(len(self.sections), self.numbers[self.names]))

    def _renumbered(self, section: Section) -> Section:
        link = self.numbers.get(section.link, 0)
        has_number = section.type in {SHT_RELA, _SHT_REL} or section.flags & _SHF_INFO_LINK
        info = self.numbers.get(section.info, 0) if has_number else section.info
        return msgspec.structs.replace(section, link=link, info=info)

    def symbols(self, source: ElfBytes, sections: Sequence[Section]) -> Iterator[Replacement]:
        """Yield the new numbers of sections in symbols, at old file offsets; ``sections`` are the old headers."""
        if not self.is_renumbered:
            return
        for table in sections:
            if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
                usable = table.size - table.size % SYMBOL_LAYOUT.size
                rows = SYMBOL_LAYOUT.iter_unpack(source.read(table.offset, usable, "the symbols"))
                for row, (_, _, _, number, _, _) in enumerate(rows):
                    if number < _RESERVED and self.numbers.get(number, number) != number:
                        place = table.offset + row * SYMBOL_LAYOUT.size + _SYMBOL_SECTION_AT
                        yield Replacement.of(place, _NUMBER.pack(self.numbers[number]))


def order_sections(
    sections: Sequence[Section], names: int, *, added: Sequence[Section] = (), gone: Sequence[Section] = ()
) -> SectionTable:
    """Put loaded sections before others and ``added`` ones, which are loaded, behind the loaded ones.

    Otherwise the order stays; ``gone`` are left out. Raises `ElfError` for more sections than fit without an extension
    of the format, and for groups of sections, which only object files have.
    """
    kept = [number for number, section in enumerate(sections) if section not in gone]
    loaded = [number for number in kept if number == 0 or sections[number].flags & SHF_ALLOC]
    others = sorted(set(kept) - set(loaded))
    new = [*(sections[number] for number in loaded), *added, *(sections[number] for number in others)]
    numbers = {old: place for place, old in enumerate(loaded)}
    numbers |= {old: len(loaded) + len(added) + place for place, old in enumerate(others)}
    return SectionTable(tuple(new), numbers, names)


def require_plain_numbers(source: ElfBytes, sections: Sequence[Section]) -> None:
    """Raise `ElfError` for a file whose sections can't be renumbered."""
    if len(sections) + 1 >= _RESERVED or any(s.type in {SHT_SYMTAB_SHNDX, _SHT_GROUP} for s in sections):
        raise ElfError(source.name, f"{len(sections)} sections, or groups of them", expected="a linked file")
