"""What relocations make of the pointers in an ELF file; see https://gabi.xinuos.com/elf/06-reloc.html."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf_sections import SHT_NOBITS, Section

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["Pointer", "resolve_pointers"]

_SHT_RELA = 4
_ET_REL = 1
_EM_X86_64 = 62
_EM_AARCH64 = 183
_RELA = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_ABSOLUTE = {_EM_X86_64: 1, _EM_AARCH64: 257}
_RELATIVE = {_EM_X86_64: 8, _EM_AARCH64: 1027}


class Pointer(msgspec.Struct, frozen=True):
    """A pointer after relocation.

    ``target`` is the address it holds; in a relocatable file, the offset in the section it refers to. ``stored_at`` is
    the file offset of the 8 bytes that decide it: an addend, or the pointer itself; none when a symbol does.
    """

    target: int
    stored_at: int | None


def resolve_pointers(
    data: memoryview, sections: tuple[Section, ...], section: Section, offsets: Collection[int]
) -> dict[int, Pointer]:
    """Return the pointers at ``offsets`` of ``section``, resolved as the linker or the dynamic loader does.

    What has no relocation, and what a RELR table covers, holds its address in place.
    """
    machine = int.from_bytes(data[0x12:0x14], "little")
    is_relocatable = data[0x10] == _ET_REL
    base = 0 if is_relocatable else section.address
    wanted = {base + offset: offset for offset in offsets}
    pointers = {offset: _read_in_place(data, section.offset + offset) for offset in offsets}
    for table in sections:
        if table.type != _SHT_RELA or (is_relocatable and _at(sections, table.info) != section):
            continue
        for position, address, info, addend in _iter_relocations(data, table):
            if address in wanted and info & 0xFFFFFFFF == _RELATIVE.get(machine):
                pointers[wanted[address]] = Pointer(addend, position + 16)
            elif address in wanted and info & 0xFFFFFFFF == _ABSOLUTE.get(machine):
                pointers[wanted[address]] = Pointer(
                    _symbol_value(data, _at(sections, table.link), info >> 32) + addend, None
                )
    return pointers


def _read_in_place(data: memoryview, position: int) -> Pointer:
    return Pointer(int.from_bytes(data[position : position + 8], "little"), position)


def _iter_relocations(data: memoryview, table: Section) -> Iterator[tuple[int, int, int, int]]:
    usable = table.size - table.size % _RELA.size
    rows = _RELA.iter_unpack(data[table.offset : table.offset + usable])
    for number, (address, info, addend) in enumerate(rows):
        yield table.offset + number * _RELA.size, address, info, addend


def _at(sections: tuple[Section, ...], index: int) -> Section | None:
    return sections[index] if index < len(sections) else None


def _symbol_value(data: memoryview, symbols: Section | None, index: int) -> int:
    """Return the value of a symbol; 0 for one that doesn't exist, as for one that is undefined."""
    if symbols is None or symbols.type == SHT_NOBITS or (index + 1) * _SYMBOL.size > symbols.size:
        return 0
    value: int = _SYMBOL.unpack_from(data, symbols.offset + index * _SYMBOL.size)[4]
    return value
