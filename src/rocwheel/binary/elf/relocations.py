"""Resolves the pointers in an ELF file using its relocations; see https://gabi.xinuos.com/elf/06-reloc.html."""

from __future__ import annotations

import sys
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from rocwheel.binary.elf.header import (
    EM_AARCH64,
    EM_PPC64,
    EM_X86_64,
    ET_REL,
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_RELA,
    SHT_RELR,
    SHT_SYMTAB,
    ElfError,
    ElfSection,
    Header,
    Segment,
    load_segments,
)
from rocwheel.binary.elf.mapping import find_offset, find_table
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT, iter_symbol_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rocwheel.binary.elf.dynamic import DynamicFile
    from rocwheel.binary.elf.header import ElfBytes

_RELA: Final = Struct("<QQq")
RELOCATION_SIZE: Final = _RELA.size
_POINTER: Final = Struct("<Q")
INFO_AT, _ADDEND_AT = 8, 16
_SYMBOL_VALUE_AT = 8
_RELR_SPAN = 63
"""The number of words to which a bitmap in a RELR table applies."""
_ABSOLUTE = {EM_PPC64: 38, EM_X86_64: 1, EM_AARCH64: 257}
_KINDS, _MOST_OVERLAP = {SHT_SYMTAB, SHT_DYNSYM, SHT_RELA, SHT_RELR}, 2
_MOST_LOADED = 256
_RELATIVE = {EM_PPC64: 22, EM_X86_64: 8, EM_AARCH64: 1027}
_COPY = {EM_PPC64: 19, EM_X86_64: 5, EM_AARCH64: 1024}
_DT_RELA, _DT_RELASZ = 7, 8
_CHUNK = 1 << 16


class Pointer(msgspec.Struct, frozen=True):
    """A pointer after relocation.

    ``target`` is the address that the pointer contains; in a relocatable file, it is an offset in the section that the
    pointer refers to. ``stored_at`` is the file offset of the 8 bytes that determine ``target`` (an addend, or the
    pointer itself). If a symbol determines ``target`` instead, ``stored_at`` is `None`, and ``named_at`` is the file
    offset of the relocation that refers to the symbol.
    """

    target: int
    stored_at: int | None
    named_at: int | None = None


def pack_relative(machine: int, target: int) -> bytes | None:
    """Return a relocation to ``target``, without its address field, that works at any load address.

    Returns `None` for a machine whose relocations are unknown.
    """
    kind = _RELATIVE.get(machine)
    return None if kind is None else _RELA.pack(0, kind, target)[INFO_AT:]


def find_copied(file: DynamicFile, machine: int) -> frozenset[int]:
    """Return the numbers of the dynamic symbols whose objects the loader copies into a program (``R_X86_64_COPY``).

    The space for such an object is in the program, so the program defines the symbol. However, the entire process
    shares a single object.
    """
    address, size = file.table.value(_DT_RELA), file.table.value(_DT_RELASZ)
    kind = _COPY.get(machine)
    if address is None or size is None or kind is None:
        return frozenset()
    offset, room = find_table(file.source, file.segments, address, size, "the relocations")
    rows = iter_relocations(file.source, offset, min(size, room))
    return frozenset(info >> 32 for _, info, _ in rows if info & 0xFFFFFFFF == kind)


def iter_relocations(source: ElfBytes, offset: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield the address, info, and addend of each complete relocation in ``size`` bytes, reading in chunks."""
    end = offset + size // RELOCATION_SIZE * RELOCATION_SIZE
    for start in range(offset, end, _CHUNK * RELOCATION_SIZE):
        yield from _RELA.iter_unpack(source.read(start, min(end - start, _CHUNK * RELOCATION_SIZE), "the relocations"))


def resolve_pointers(
    source: ElfBytes, header: Header, sections: Sequence[ElfSection], section: ElfSection, offsets: Collection[int]
) -> dict[int, Pointer]:
    """Return the pointers at ``offsets`` in ``section``, as the linker or the dynamic loader resolves them.

    For a pointer without a relocation, or in a RELR table, the address is stored in the pointer itself. Raises
    `ElfError` if a pointer is outside the file.
    """
    base = 0 if header.type == ET_REL else section.address
    wanted = {base + offset: offset for offset in offsets}
    pointers = {offset: _read_in_place(source, section.offset + offset) for offset in offsets}
    for table in _tables(source, sections):
        if table.type != SHT_RELA or (header.type == ET_REL and _at(sections, table.info) != section):
            continue
        rows = _read_relocations(source, table)
        for number, address in enumerate(rows.addresses):
            if address not in wanted:
                continue
            position, kind = table.offset + number * _RELA.size, rows.infos[number] & 0xFFFFFFFF
            if kind == _RELATIVE.get(header.machine):
                pointers[wanted[address]] = Pointer(rows.addends[number], position + _ADDEND_AT)
            elif kind == _ABSOLUTE.get(header.machine):
                value = _symbol_value(source, _at(sections, table.link), rows.infos[number] >> 32)
                pointers[wanted[address]] = Pointer(value + rows.addends[number], None, position)
    return pointers


def _tables(source: ElfBytes, sections: Iterable[ElfSection]) -> Iterator[ElfSection]:
    """Yield the tables of symbols and relocations; raise `ElfError` if they are so large that they must overlap.

    The check counts the bytes of the tables and the pointers that RELR tables represent. Eight bytes in a RELR table
    can represent 63 pointers.
    """
    total = pointers = 0
    for table in sections:
        if table.type not in _KINDS:
            continue
        total += table.size
        if total > _MOST_OVERLAP * source.size:
            found = f"symbol and relocation tables that total more than {_MOST_OVERLAP * source.size} bytes"
            raise ElfError(source.name, found, expected="tables that don't overlap")
        if table.type == SHT_RELR:
            pointers += sum(word.bit_count() - 1 if word & 1 else 1 for word in _relr_words(source, table))
        if pointers * _POINTER.size > source.size:
            found = f"RELR tables with at least {pointers} pointers in {source.size} bytes"
            raise ElfError(source.name, found, expected="each pointer only once and inside the file")
        yield table


def _read_in_place(source: ElfBytes, position: int) -> Pointer:
    [target] = source.unpack(_POINTER, position, "a pointer to device code")
    return Pointer(target, position)


class _Relocations(NamedTuple):
    """The columns of a relocation table, for fast searches in large tables."""

    addresses: array[int]
    infos: array[int]
    addends: array[int]


def _read_relocations(source: ElfBytes, table: ElfSection) -> _Relocations:
    usable = table.size - table.size % _RELA.size
    data = source.read(table.offset, usable, "the relocations")
    words, signed = array("Q", data), array("q", data)
    if sys.byteorder == "big":
        words.byteswap()
        signed.byteswap()
    return _Relocations(words[0::3], words[1::3], signed[2::3])


def _at(sections: Sequence[ElfSection], index: int) -> ElfSection | None:
    return sections[index] if index < len(sections) else None


def _symbol_value(source: ElfBytes, symbols: ElfSection | None, index: int) -> int:
    """Return the value of a symbol, or 0 if the symbol doesn't exist or is undefined."""
    if symbols is None or not symbols.has_bytes or (index + 1) * SYMBOL_LAYOUT.size > symbols.size:
        return 0
    value: int = source.unpack(SYMBOL_LAYOUT, symbols.offset + index * SYMBOL_LAYOUT.size, "a symbol")[4]
    return value


def iter_addresses(
    source: ElfBytes, header: Header, segments: Sequence[Segment], sections: Sequence[ElfSection], target: ElfSection
) -> Iterator[Pointer]:
    """Yield every address in ``target`` that a shared library stores in symbols and in relocated locations.

    Addresses in instructions aren't found, because they are relative to the instruction. Raises `ElfError` for damaged
    tables.
    """
    loaded = _few_loaded(source, segments)
    index = sections.index(target)
    for table in _tables(source, sections):
        if table.type in {SHT_SYMTAB, SHT_DYNSYM}:
            for at, (_, _, _, section, value, _) in iter_symbol_rows(source, table):
                if section == index:
                    yield Pointer(value, at + _SYMBOL_VALUE_AT)
        elif table.type == SHT_RELA:
            yield from _addends_in(source, header, loaded, table, target)
        elif table.type == SHT_RELR:
            for address in _iter_relr(source, table):
                position, _ = find_offset(source, loaded, address, "a relocated pointer")
                pointer = _read_in_place(source, position)
                if target.address <= pointer.target < target.address + target.size:
                    yield pointer


def _few_loaded(source: ElfBytes, segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the loaded segments; raise `ElfError` if there are too many segments to search them for each pointer."""
    loaded = load_segments(segments)
    if len(loaded) > _MOST_LOADED:
        expected = f"at most {_MOST_LOADED}; linkers create fewer than ten"
        raise ElfError(source.name, f"{len(loaded)} loaded segments", expected=expected)
    return loaded


def iter_relocated(source: ElfBytes, sections: Iterable[ElfSection]) -> Iterator[int]:
    """Yield the address of every location that the loader relocates; raise `ElfError` for damaged tables."""
    for table in _tables(source, sections):
        if table.flags & SHF_ALLOC and table.type == SHT_RELA:
            yield from _read_relocations(source, table).addresses
        elif table.flags & SHF_ALLOC and table.type == SHT_RELR:
            yield from _iter_relr(source, table)


def _addends_in(
    source: ElfBytes, header: Header, segments: Sequence[Segment], table: ElfSection, target: ElfSection
) -> Iterator[Pointer]:
    """Yield the addends of relocations, and the relocated location itself if a linker wrote the same address to it."""
    relative = _RELATIVE.get(header.machine)
    rows = _read_relocations(source, table)
    start, stop = target.address, target.address + target.size
    for number in [number for number, addend in enumerate(rows.addends) if start <= addend < stop]:
        if rows.infos[number] & 0xFFFFFFFF == relative:
            addend = rows.addends[number]
            yield Pointer(addend, table.offset + number * _RELA.size + _ADDEND_AT)
            place, _ = find_offset(source, segments, rows.addresses[number], "a relocated pointer")
            in_place = _read_in_place(source, place)
            if in_place.target == addend:
                yield in_place


def _relr_words(source: ElfBytes, table: ElfSection) -> Iterator[int]:
    usable = table.size - table.size % _POINTER.size
    return (word for (word,) in _POINTER.iter_unpack(source.read(table.offset, usable, "the relocations")))


def _iter_relr(source: ElfBytes, table: ElfSection) -> Iterator[int]:
    """Yield the addresses of the pointers in a RELR table. An even word is an address, and an odd word is a bitmap."""
    base = 0
    for word in _relr_words(source, table):
        if word & 1:
            yield from (base + bit * _POINTER.size for bit in range(_RELR_SPAN) if word >> (bit + 1) & 1)
            base += _RELR_SPAN * _POINTER.size
        else:
            yield word
            base = word + _POINTER.size
