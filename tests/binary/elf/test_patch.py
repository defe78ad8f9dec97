"""Tests of `rocwheel.binary.elf.patch`."""

from __future__ import annotations

import pytest

from rocwheel.binary.elf.header import ElfBytes, ElfError
from rocwheel.binary.elf.patch import PatchWriter
from rocwheel.core.patch import FilePatch, Replacement

FILE = b"aabbccdd"


def writer() -> PatchWriter:
    return PatchWriter(ElfBytes(memoryview(FILE), "lib.so"))


@pytest.mark.parametrize(
    ("offset", "table", "expected"),
    [
        pytest.param(2, b"bbcc", FilePatch(8), id="none changes"),
        pytest.param(2, b"bbxx", FilePatch(8, (Replacement(4, 6, b"xx"),)), id="the second changes"),
        pytest.param(6, b"ddee", FilePatch(10, (Replacement(8, 10, b"ee"),)), id="one lies behind the file's end"),
        pytest.param(12, b"eeff", FilePatch(16, (Replacement(12, 16, b"eeff"),)), id="all do"),
    ],
)
def test_unchanged_rows_are_not_written(offset: int, table: bytes, expected: FilePatch) -> None:
    changes = writer()
    changes.write_rows(offset, table, 2)
    assert changes.patch() == expected


def test_a_row_that_overlaps_another_write_is_refused() -> None:
    changes = writer()
    changes.write(3, b"xx")
    changes.write_rows(2, b"bbyy", 2)
    with pytest.raises(ElfError, match=r"^lib\.so: tables that overlap; expected tables that don't overlap"):
        changes.patch()
