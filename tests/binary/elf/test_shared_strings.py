"""Tables of which every entry names the same long string: small files that would take gigabytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf, read_elf_traits
from rocwheel.binary.elf.header import ElfError

if TYPE_CHECKING:
    from collections.abc import Sequence

_DYNAMIC_AT = 64 + 2 * 56
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 1, 4, 5, 6, 10


def make_elf(length: int, *, needed: int = 0, symbols: int = 1) -> bytes:
    """Return a library with one string of a length, which all names are, or end in."""
    dynamic_size = 16 * (needed + 5)
    strings_at = _DYNAMIC_AT + dynamic_size
    symbols_at = -(-(strings_at + length + 2) // 8) * 8
    hash_at = symbols_at + 24 * symbols
    size = hash_at + 8 + 4 * (1 + symbols)
    data = bytearray(size)
    data[:16] = b"\x7fELF\2\1\1" + bytes(9)
    struct.pack_into("<HHIQQQIHHHHHH", data, 16, 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    struct.pack_into("<IIQQQQQQ", data, 64, 1, 6, 0, 0, 0, size, size, 4096)
    struct.pack_into("<IIQQQQQQ", data, 120, 2, 6, _DYNAMIC_AT, _DYNAMIC_AT, _DYNAMIC_AT, *[dynamic_size] * 2, 8)
    tables = [(_DT_STRTAB, strings_at), (_DT_STRSZ, length + 2), (_DT_SYMTAB, symbols_at), (_DT_HASH, hash_at), (0, 0)]
    _pack_pairs(data, [*[(_DT_NEEDED, 1)] * needed, *tables])
    data[strings_at + 1 : strings_at + 1 + length] = b"a" * length
    for number in range(1, symbols):
        struct.pack_into("<IBBHQQ", data, symbols_at + 24 * number, number, 0x12, 0, 1, 0x1000, 8)
    struct.pack_into("<II", data, hash_at, 1, symbols)
    return bytes(data)


def _pack_pairs(data: bytearray, entries: Sequence[tuple[int, int]]) -> None:
    for index, entry in enumerate(entries):
        struct.pack_into("<QQ", data, _DYNAMIC_AT + 16 * index, *entry)


def test_symbols_that_start_at_every_byte_of_a_long_name_are_refused() -> None:
    data = make_elf(400_000, symbols=20_000)
    assert len(data) < 1 << 20
    with pytest.raises(
        ElfError, match="x: symbol names that reuse the 400002 bytes of the string table too many times"
    ):
        read_elf_traits(data, name="x")


def test_symbol_names_that_share_suffixes_are_read() -> None:
    assert read_elf_traits(make_elf(3, symbols=4), name="x").exports == {b"aaa", b"aa", b"a"}


def test_many_needed_entries_with_one_long_name_are_refused() -> None:
    data = make_elf(60_000, needed=8_000)
    with pytest.raises(ElfError, match="x: strings that total more than 67108864 bytes, counting a NEEDED name"):
        read_elf(data, name="x")


def test_needed_entries_with_the_same_short_name_are_read() -> None:
    assert read_elf(make_elf(3, needed=2), name="x").needed == ("aaa", "aaa")
