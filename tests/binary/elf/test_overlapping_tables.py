"""Section headers that all name one table: a small file that would take minutes."""

from __future__ import annotations

import struct

import pytest

from rocwheel.binary.elf.header import ElfBytes, ElfError, read_header, read_sections, read_segments
from rocwheel.binary.elf.relocations import iter_addresses, iter_relocated

_SHT_RELA, _SHT_RELR, _SHF_ALLOC = 4, 19, 2


def make_elf(tables: int, relocations: int) -> bytes:
    """Return a library whose sections are one table of relocations, so many times."""
    return _elf_of(bytes(relocations * 24), tables, _SHT_RELA)


def _elf_of(table: bytes, tables: int, kind: int) -> bytes:
    sections_at = 64 + len(table)
    data = bytearray(64) + table + bytes(64 * (tables + 1))
    data[:16] = b"\x7fELF\2\1\1" + bytes(9)
    struct.pack_into("<HHIQQQIHHHHHH", data, 16, 3, 62, 1, 0, 0, sections_at, 0, 64, 56, 0, 64, tables + 1, 0)
    for number in range(1, tables + 1):
        fields = (0, kind, _SHF_ALLOC, 0, 64, len(table), 0, 0, 8, 24)
        struct.pack_into("<IIQQQQIIQQ", data, sections_at + 64 * number, *fields)
    return bytes(data)


def relocated(data: bytes) -> list[int]:
    return list(iter_relocated(ElfBytes(memoryview(data), "x"), read_sections(data, name="x")))


def test_overlapping_tables_are_refused() -> None:
    message = "x: symbol and relocation tables that total more than 1856256 bytes; expected tables that don't overlap"
    with pytest.raises(ElfError, match=message):
        relocated(make_elf(7000, 20_000))


def test_a_relocation_table_is_read() -> None:
    assert relocated(make_elf(1, 3)) == [0, 0, 0]


def test_a_relr_table_is_read() -> None:
    words = struct.pack("<3Q", 0x1000, 0b1011, 0x2000)
    assert relocated(_elf_of(words + bytes(64), 1, _SHT_RELR))[:4] == [0x1000, 0x1008, 0x1018, 0x2000]


def test_relr_tables_with_more_pointers_than_the_file_can_contain_are_refused() -> None:
    """A table of 8,000 bitmaps covers half a million pointers, and the same table stands there twice."""
    data = _elf_of(b"\xff" * 64_000, 2, _SHT_RELR)
    message = (
        "x: RELR tables with at least 504000 pointers in 64256 bytes; expected each pointer only once and "
        "inside the file"
    )
    with pytest.raises(ElfError, match=message):
        relocated(data)


def test_a_file_with_thousands_of_loaded_segments_is_refused_at_once() -> None:
    """Each of 40,000 pointers was looked for in 6,000 segments, which took half a minute."""
    data = bytearray(_elf_of(struct.pack("<Q", 0x100) * 40_000, 1, _SHT_RELR))
    struct.pack_into("<Q", data, 32, len(data))
    struct.pack_into("<H", data, 56, 6000)
    data += struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, len(data), len(data), 4096) * 6000
    source = ElfBytes(memoryview(data), "x")
    header, sections = read_header(source), read_sections(bytes(data), name="x")
    found = iter_addresses(source, header, read_segments(source, header), sections, sections[1])
    with pytest.raises(ElfError, match="x: 6000 loaded segments; expected at most 256"):
        next(found)
