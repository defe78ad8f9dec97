"""The symbol ``_DYNAMIC``, by which linkers name the dynamic section (gABI, "Dynamic Section")."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf_sections import SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, Section
from rocwheel.binary.elf_symbols import SYMBOL_LAYOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.elf_bytes import ElfBytes
    from rocwheel.binary.runpath_image import Image

__all__ = ["find_dynamic_symbol_values"]

_NAME: Final = Struct("<I")
_VALUE_OFFSET = 8


def find_dynamic_symbol_values(source: ElfBytes, image: Image) -> Iterator[int]:
    """Give the file offset of the value of each symbol ``_DYNAMIC`` that is the dynamic section's address."""
    for section in image.sections:
        if section.type in {SHT_SYMTAB, SHT_DYNSYM} and section.link < len(image.sections):
            for symbol in _find_symbols(source, section, image.sections[section.link]):
                fields = source.unpack(SYMBOL_LAYOUT, symbol, "a symbol")
                if fields[4] == image.dynamic.address:
                    yield symbol + _VALUE_OFFSET


def _find_symbols(source: ElfBytes, symbols: Section, strings: Section) -> Iterator[int]:
    """Give the file offset of each symbol with that name, without going through all the others."""
    if strings.type != SHT_STRTAB:
        return
    for name in source.find(b"_DYNAMIC\0", strings.offset, strings.size, "the symbol names"):
        packed = _NAME.pack(name - strings.offset & 0xFFFFFFFF)
        for position in source.find(packed, symbols.offset, symbols.size, "the symbols"):
            if (position - symbols.offset) % SYMBOL_LAYOUT.size == 0:
                yield position
