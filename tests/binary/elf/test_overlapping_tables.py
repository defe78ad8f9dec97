"""Section headers that all name one table: a small file that would take minutes."""

from __future__ import annotations

import struct

import pytest

from rocwheel.binary.elf.bytes import ElfBytes, ElfError
from rocwheel.binary.elf.relocations import iter_relocated
from rocwheel.binary.elf.sections import read_sections

_SHT_RELA, _SHF_ALLOC = 4, 2


def make_elf(tables: int, relocations: int) -> bytes:
    """Return a library whose sections are one table of relocations, so many times."""
    sections_at = 64 + relocations * 24
    data = bytearray(sections_at + 64 * (tables + 1))
    data[:16] = b"\x7fELF\2\1\1" + bytes(9)
    struct.pack_into("<HHIQQQIHHHHHH", data, 16, 3, 62, 1, 0, 0, sections_at, 0, 64, 56, 0, 64, tables + 1, 0)
    for number in range(1, tables + 1):
        fields = (0, _SHT_RELA, _SHF_ALLOC, 0, 64, relocations * 24, 0, 0, 8, 24)
        struct.pack_into("<IIQQQQIIQQ", data, sections_at + 64 * number, *fields)
    return bytes(data)


def relocated(data: bytes) -> list[int]:
    return list(iter_relocated(ElfBytes(memoryview(data), "x"), read_sections(data, name="x")))


def test_tables_that_lie_in_one_another_are_refused() -> None:
    message = "x: tables of symbols and relocations of more than 1856256 bytes; expected tables apart from one another"
    with pytest.raises(ElfError, match=message):
        relocated(make_elf(7000, 20_000))


def test_a_table_is_read() -> None:
    assert relocated(make_elf(1, 3)) == [0, 0, 0]
