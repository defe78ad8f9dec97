"""Reads Windows object files (COFF): their sections, and the targets of their pointers after linking.

The layouts follow Microsoft's "PE Format", sections "COFF File Header", "Section Table", "COFF Relocations", and "COFF
Symbol Table". Object files with more than 65279 sections (``/bigobj``) have a different header and aren't supported.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.header import AMD64, ARM64, SECTION_LAYOUT, PeBytes, PeError, section_name

if TYPE_CHECKING:
    from collections.abc import Collection

_HEADER: Final = Struct("<HHIIIHH")
_RELOCATION: Final = Struct("<IIH")
_SYMBOL: Final = Struct("<8sIhHBB")
_POINTER: Final = Struct("<Q")
_COUNT: Final = Struct("<I")
_IS_ADDRESS: Final = {AMD64: 1, ARM64: 14}
"""The kind of relocation for a 64-bit address (``ADDR64``) on each machine."""
_HAS_MORE_RELOCATIONS: Final = 0x0100_0000
_MOST_RELOCATIONS: Final = 0xFFFF


class ObjectSection(msgspec.Struct, frozen=True):
    """A section. Offsets are in the file, and sizes are in bytes."""

    name: str
    offset: int
    size: int
    traits: int
    relocations_at: int = 0
    relocation_count: int = 0


class ObjectFile(msgspec.Struct, frozen=True):
    """An object file: its sections, in header order, and the position of its symbols."""

    machine: int
    sections: tuple[ObjectSection, ...]
    symbols_at: int
    symbol_count: int


def read_object_file(source: PeBytes) -> ObjectFile:
    """Read the headers; raise `PeError` if sections or tables are outside the file."""
    machine, number, _, symbols_at, symbols, _, _ = source.unpack(_HEADER, 0, "the COFF header")
    source.require(symbols_at, symbols * _SYMBOL.size, "the symbol table")
    strings_at = symbols_at + symbols * _SYMBOL.size if symbols_at else 0
    table = source.read(_HEADER.size, number * SECTION_LAYOUT.size, "the section table")
    sections = (_section(source, strings_at, *fields) for fields in SECTION_LAYOUT.iter_unpack(table))
    return ObjectFile(machine, tuple(sections), symbols_at, symbols)


def _section(source: PeBytes, strings_at: int, raw: bytes, *fields: int) -> ObjectSection:
    _, _, size, offset, relocations_at, _, count, _, traits = fields
    name = section_name(source, strings_at, raw)
    if offset:
        source.require(offset, size, f"the section {name}")
    if count == _MOST_RELOCATIONS and traits & _HAS_MORE_RELOCATIONS:
        (count,) = source.unpack(_COUNT, relocations_at, "the number of relocations")
    return ObjectSection(name, offset, size if offset else 0, traits, relocations_at, count)


def find_targets(
    source: PeBytes, file: ObjectFile, section: ObjectSection, offsets: Collection[int]
) -> dict[int, tuple[ObjectSection | None, int]]:
    """Return each pointer's target section and the offset in that section, for pointers at ``offsets`` in ``section``.

    A pointer to a symbol in another file has no target section. Raises `PeError` for relocations and symbols outside
    the file.
    """
    places: dict[int, tuple[ObjectSection | None, int]] = dict.fromkeys(offsets, (None, 0))
    size = section.relocation_count * _RELOCATION.size
    table = source.read(section.relocations_at, size, "relocations") if size else b""
    for at, number, kind in _RELOCATION.iter_unpack(table):
        if at in places and kind == _IS_ADDRESS.get(file.machine):
            (addend,) = source.unpack(_POINTER, section.offset + at, "a pointer")
            holder, value = _symbol(source, file, number)
            places[at] = (holder, value + addend)
    return places


def _symbol(source: PeBytes, file: ObjectFile, number: int) -> tuple[ObjectSection | None, int]:
    """Return a symbol's section, and the symbol's offset in the section."""
    if number >= file.symbol_count:
        raise PeError(source.name, f"a relocation to symbol {number}, but only {file.symbol_count} symbols")
    _, value, section, *_ = source.unpack(_SYMBOL, file.symbols_at + number * _SYMBOL.size, "a symbol")
    return (file.sections[section - 1], value) if 0 < section <= len(file.sections) else (None, 0)
