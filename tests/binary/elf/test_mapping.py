"""Where addresses are in the file, beside the segments, too."""

from __future__ import annotations

from itertools import groupby

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import ElfBytes, ElfError, Segment
from rocwheel.binary.elf.mapping import find_offset, find_table, read_memory, require_contents
from tests.support.places import ELF_FIXTURES as FIXTURES

FILE = ElfBytes(memoryview(bytes(0x6800)), "lib.so")


def load(offset: int, address: int, size: int, memory: int | None = None) -> Segment:
    return Segment(1, 4, offset, address, address, size, size if memory is None else memory, 0x1000)


FIRST = load(0x0, 0x10000, 0x600)


@pytest.mark.parametrize(
    ("others", "loaded"),
    [
        pytest.param([], 0xB00, id="the rest of the page"),
        pytest.param([load(0x1000, 0x11000, 0x300)], 0x1B00, id="a segment that goes on"),
        pytest.param([load(0x1000, 0x11000, 0x300), load(0x2800, 0x12800, 0x10)], 0x2B00, id="two that go on"),
        pytest.param([load(0x2000, 0x12000, 0x300)], 0xB00, id="a hole in memory"),
        pytest.param([load(0x2000, 0x11000, 0x300)], 0xB00, id="a segment from elsewhere in the file"),
        pytest.param([load(0x2800, 0x10800, 0x300)], 0x100, id="a segment from elsewhere on the same page"),
        pytest.param([load(0x1000, 0x11000, 0x300, 0x400)], 0xE00, id="a segment with bss"),
        pytest.param([load(0x800, 0x10800, 0x100, 0x400)], 0x400, id="bss on the same page"),
        pytest.param([load(0x1000, 0x11000, 0x5400)], 0x6300, id="the end of the file"),
    ],
)
def test_a_table_ends_where_memory_is_no_longer_as_the_file(others: list[Segment], loaded: int) -> None:
    assert find_table(FILE, [FIRST, *others], 0x10500, 0x8000, "a table") == (0x500, loaded)


def test_a_table_that_fits_its_segment_ends_there() -> None:
    assert find_table(FILE, [FIRST, load(0x1000, 0x11000, 0x300)], 0x10500, 0x100, "a table") == (0x500, 0x100)


def test_the_page_of_a_segment_also_holds_its_neighbors() -> None:
    assert find_offset(FILE, [FIRST], 0x10700, "a table") == (0x700, 0x1000)
    assert find_offset(FILE, [load(0x1400, 0x10400, 0x100)], 0x10200, "a table") == (0x1200, 0x2000)


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([], id="no segment"),
        pytest.param([load(0x0, 0x10000, 0x600, 0x700)], id="zeros in the file's place"),
        pytest.param([load(0x6000, 0x10000, 0x600)], id="behind the end of the file"),
        pytest.param([load(0x100, 0x10800, 0x100)], id="before the begin of the file"),
    ],
)
def test_an_address_that_nothing_is_loaded_to_is_reported(segments: list[Segment]) -> None:
    message = r"^lib\.so: a table is said to be at address 0x\w+, where no segment of the file is loaded$"
    with pytest.raises(ElfError, match=message):
        find_offset(FILE, segments, 0x10880 if segments and segments[0].offset == 0x6000 else 0x10680, "a table")


@pytest.mark.parametrize(("name", "length"), [("program-patchelf-0.14", 3450), ("program-patchelf-0.17", 0)])
def test_what_patchelf_has_changed_several_times_is_read(name: str, length: int) -> None:
    elf = read_elf((FIXTURES / name).read_bytes(), name=name)
    assert elf.needed == ("libanswer.so.1",)
    assert len(elf.runpath or "") == length


def test_a_segment_within_another_does_not_hide_a_third_over_it() -> None:
    outer, inner, over = load(0x0, 0x10000, 0x3000), load(0x1000, 0x11000, 0x100), load(0x4000, 0x12000, 0x100)
    with pytest.raises(ElfError, match=r"a segment at 0x12000 that is loaded over the one at 0x10000"):
        require_contents(FILE, [outer, inner, over])


def test_zeros_of_a_segment_within_another_are_no_bytes_of_that() -> None:
    outer, inner = load(0x0, 0x10000, 0x3000), load(0x1000, 0x11000, 0x100, 0x108)
    with pytest.raises(ElfError, match=r"a segment at 0x11000 that is loaded over the one at 0x10000"):
        require_contents(FILE, [outer, inner])


PAGES = ElfBytes(memoryview(b"".join(bytes([number]) * 0x1000 for number in range(1, 6))), "lib.so")
"""A file whose first page is full of ones, the second of twos ..."""


@pytest.mark.parametrize(
    ("segments", "found"),
    [
        pytest.param([load(0x1000, 0x10000, 0x10)], b"\2", id="the rest of a page"),
        pytest.param([load(0x1000, 0x10000, 0x10, 0x20)], b"\2\0\2", id="zeros"),
        pytest.param([load(0x1000, 0x10000, 0x10, 0x1800)], b"\2\0", id="pages of zeros"),
        pytest.param([load(0x1000, 0x10000, 0x2000)], b"\2\3", id="two pages"),
        pytest.param([load(0x1000, 0x10000, 0x10), load(0x4000, 0x11000, 0x10)], b"\2\5", id="two segments"),
        pytest.param([load(0x1000, 0x10000, 0x10), load(0x4000, 0x10000, 0x10)], b"\5", id="the last one counts"),
        pytest.param([load(0x1000, 0x10000, 0x10), load(0x4000, 0x12000, 0x10)], b"\2", id="nothing behind a hole"),
        pytest.param([load(0x4000, 0x10000, 0x2000)], b"\5\0", id="the end of the file"),
        pytest.param([load(0x1000, 0x11000, 0x10)], b"", id="nothing there"),
    ],
)
def test_memory_has_what_loaders_map_last(segments: list[Segment], found: bytes) -> None:
    assert bytes(byte for byte, _ in groupby(read_memory(PAGES, segments, 0x10008, 0x4000))) == found
