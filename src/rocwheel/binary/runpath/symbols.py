"""Symbols that stand for a section, such as ``_DYNAMIC``, and so move with it (gABI, "Symbol Table")."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.sections import SHT_DYNSYM, SHT_SYMTAB
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.runpath.image import Image

__all__ = ["find_section_symbol_values"]

_ADDRESS: Final = Struct("<Q")
_VALUE_OFFSET = 8


def find_section_symbol_values(source: ElfBytes, image: Image, index: int) -> Iterator[int]:
    """Give the file offset of the value of each symbol that is the address of the section ``index``."""
    address = _ADDRESS.pack(image.sections[index].address)
    for table in image.sections:
        if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
            for position in source.find(address, table.offset, table.size, "the symbols"):
                is_value = (position - table.offset) % SYMBOL_LAYOUT.size == _VALUE_OFFSET
                if is_value and source.unpack(SYMBOL_LAYOUT, position - _VALUE_OFFSET, "a symbol")[3] == index:
                    yield position
