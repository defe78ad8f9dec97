"""Where addresses are in the file, beside the segments, too."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import ElfBytes, ElfError, Segment
from rocwheel.binary.elf.mapping import find_offset, find_table, read_memory, require_contents
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.patch import patched_view
from rocwheel.environment.run_path_choice import SetRunpath
from tests.support.places import ELF_FIXTURES
from tests.support.places import ELF_FIXTURES as FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable


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
def test_a_table_ends_where_memory_differs_from_the_file(others: list[Segment], loaded: int) -> None:
    assert find_table(FILE, [FIRST, *others], 0x10500, 0x8000, "a table") == (0x500, loaded)


def test_a_table_that_fits_its_segment_is_read_in_full() -> None:
    assert find_table(FILE, [FIRST, load(0x1000, 0x11000, 0x300)], 0x10500, 0x100, "a table") == (0x500, 0x100)


def test_the_page_of_a_segment_also_contains_adjacent_file_content() -> None:
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
def test_an_address_outside_all_loaded_segments_is_reported(segments: list[Segment]) -> None:
    message = r"^lib\.so: a table claims to be at address 0x\w+, but no segment of the file is loaded there$"
    with pytest.raises(ElfError, match=message):
        find_offset(FILE, segments, 0x10880 if segments and segments[0].offset == 0x6000 else 0x10680, "a table")


@pytest.mark.parametrize(("name", "length"), [("program-patchelf-0.14", 3450), ("program-patchelf-0.17", 0)])
def test_a_file_changed_several_times_by_patchelf_can_be_read(name: str, length: int) -> None:
    elf = read_elf((FIXTURES / name).read_bytes(), name=name)
    assert elf.needed == ("libanswer.so.1",)
    assert len(elf.runpath or "") == length


def test_a_segment_inside_another_does_not_hide_a_third_segment_that_overlaps() -> None:
    outer, inner, over = load(0x0, 0x10000, 0x3000), load(0x1000, 0x11000, 0x100), load(0x4000, 0x12000, 0x100)
    with pytest.raises(ElfError, match=r"a segment at 0x12000 that is loaded over the segment at 0x10000"):
        require_contents(FILE, [outer, inner, over])


def test_a_nested_segment_with_zero_bytes_overlaps_the_outer_segment() -> None:
    outer, inner = load(0x0, 0x10000, 0x3000), load(0x1000, 0x11000, 0x100, 0x108)
    with pytest.raises(ElfError, match=r"a segment at 0x11000 that is loaded over the segment at 0x10000"):
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
def test_memory_contains_the_segment_that_loaders_map_last(segments: list[Segment], found: bytes) -> None:
    assert bytes(byte for byte, _ in groupby(read_memory(PAGES, segments, 0x10008, 0x4000))) == found


_ROW = struct.Struct("<IIQQQQQQ")
_LOAD, _INTERP, _PHDR, _STACK = 1, 3, 6, 0x6474E551
_NOWHERE = "but no segment of the file is loaded there"
_TYPE, _OFFSET, _ADDRESS, _FILE_SIZE, _MEMORY_SIZE, _ALIGNMENT = 0, 2, 3, 5, 6, 7


def _changed(change: Callable[[list[list[int]]], None], name: str = "libplain.so") -> bytes:
    """Return a fixture whose program headers are ``change``d."""
    data = bytearray((ELF_FIXTURES / name).read_bytes())
    (start,), (number,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    rows = [list(_ROW.unpack_from(data, start + 56 * index)) for index in range(number)]
    change(rows)
    data[start : start + 56 * number] = b"".join(_ROW.pack(*row) for row in rows)
    return bytes(data)


def _loaded(rows: list[list[int]]) -> list[list[int]]:
    return [row for row in rows if row[_TYPE] == _LOAD]


def _shift_last(rows: list[list[int]]) -> None:
    """Do what llvm-strip up to LLVM 16 does to the segment that patchelf has added."""
    _loaded(rows)[-1][_OFFSET] += 0x20


def _swap(rows: list[list[int]]) -> None:
    first, last = _loaded(rows)[0], _loaded(rows)[-1]
    first[:], last[:] = list(last), list(first)


def _lead_headers_away(rows: list[list[int]]) -> None:
    next(row for row in rows if row[_TYPE] == _PHDR)[_ADDRESS] += 1 << 24


def _align_as_patchelf_018(rows: list[list[int]]) -> None:
    """Ask for 2 MiB in all segments, though only the first is such a distance from its place in the file."""
    for row in _loaded(rows):
        row[_ALIGNMENT] = 0x200000


def _align_to_16(rows: list[list[int]]) -> None:
    _loaded(rows)[-1][_ALIGNMENT] = 16


@pytest.mark.parametrize(
    ("change", "name", "found"),
    [
        (_shift_last, "libplain.so", "a segment at 0x2f10 in the file and at 0x2ef0 in memory"),
        (_swap, "libplain.so", "segments from 0x2ef0 to 0x2c8, and other segments outside this range"),
        (
            _lead_headers_away,
            "liblld.so",
            f"the program header table (PT_PHDR) claims to be at address 0x1000040, {_NOWHERE}",
        ),
    ],
    ids=["another place of the page", "out of order", "program headers that are not loaded"],
)
def test_a_file_that_loaders_reject_is_refused(
    change: Callable[[list[list[int]]], None], name: str, found: str
) -> None:
    data = _changed(change, name)
    with pytest.raises(ElfError) as reading:
        read_elf(data, name="lib.so")
    with pytest.raises(ElfError) as editing:
        plan_runpath(data, "$ORIGIN", RunpathTag.RUNPATH, name="lib.so")
    assert (reading.value.found, editing.value.found) == (found, found)


def test_a_code_object_may_have_a_different_page_offset_in_memory() -> None:
    def shift_code(rows: list[list[int]]) -> None:
        _loaded(rows)[1][_OFFSET] += 0x20

    assert read_elf(_changed(shift_code, "gfx906.co"), name="a.co").misaligned is None


@pytest.mark.parametrize(
    ("change", "asked", "given"),
    [
        (_align_as_patchelf_018, 0x200000, [0x200000, 0x1000, 0x2000, 0x1000]),
        (_align_to_16, 16, [0x1000, 0x1000, 0x1000, 0x1000]),
    ],
)
def test_setting_the_run_path_fixes_misaligned_segments(
    change: Callable[[list[list[int]]], None], asked: int, given: list[int]
) -> None:
    data = _changed(change, "liblld.so")
    elf = read_elf(data, name="lib.so")
    assert elf.misaligned is not None
    assert elf.misaligned.alignment == asked
    view = patched_view(memoryview(data), plan_runpath(data, elf.runpath or "", RunpathTag.RUNPATH, name="lib.so"))
    mended = read_elf(bytes(view[: len(view)]), name="lib.so")
    assert (mended.misaligned, len(view)) == (None, len(data))
    assert [segment.alignment for segment in mended.segments if segment.type == _LOAD] == given


def test_setting_the_run_path_fixes_a_misaligned_library_with_an_interpreter() -> None:
    """It has an interpreter and a SONAME, as libc.so.6 and libQt6Core.so.6 have: programs load it with glibc, too."""
    original, name = (ELF_FIXTURES / "liblld.so").read_bytes(), b"libanswer.so.1\0"

    def align_and_start(rows: list[list[int]]) -> None:
        _align_as_patchelf_018(rows)
        stack = next(row for row in rows if row[_TYPE] == _STACK)
        stack[_TYPE], stack[_OFFSET], stack[_FILE_SIZE] = _INTERP, original.index(name), len(name)

    data = _changed(align_and_start, "liblld.so")
    elf = read_elf(data, name="lib.so")
    assert (elf.interpreter, elf.soname) == ("libanswer.so.1", "libanswer.so.1")
    assert elf.misaligned is not None
    promised = SetRunpath(elf.runpath or "", RunpathTag.RUNPATH)
    view = patched_view(memoryview(data), plan_runpath(data, promised.value, promised.tag, name="lib.so"))
    mended = read_elf(bytes(view[: len(view)]), name="lib.so")
    assert mended == promised.applied_to(elf)
    assert mended.misaligned is None


def test_a_large_alignment_that_determines_the_memory_layout_is_kept() -> None:
    def align_last(rows: list[list[int]]) -> None:
        _loaded(rows)[-1][_ALIGNMENT] = 0x200000

    data = _changed(align_last, "liblld.so")
    elf = read_elf(data, name="lib.so")
    assert elf.misaligned is not None
    assert plan_runpath(data, elf.runpath or "", RunpathTag.RUNPATH, name="lib.so").is_identity


def test_the_alignment_of_a_program_is_not_checked() -> None:
    data = _changed(_align_as_patchelf_018, "program-lld")
    elf = read_elf(data, name="program")
    assert elf.misaligned is None
    assert plan_runpath(data, elf.runpath or "", RunpathTag.RUNPATH, name="program").is_identity
