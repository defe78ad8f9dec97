"""Headers that name the same part of a file thousands of times: small files that would take minutes or gigabytes."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.bundles.device_code import read_offload_images
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, read_code_object
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import ElfError, ElfSection
from rocwheel.binary.elf.patch import order_sections
from rocwheel.binary.kernel_metadata import kernel_names
from rocwheel.binary.runpath import plan_runpath
from tests.support.code_objects import code_object_header
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

_PT_NOTE = 4
_NAMES = b"\0.llvm.offloading\0"


def _with_segments(header: bytes, notes: bytes, number: int) -> bytes:
    """Return a file with so many note segments, all of which are the same notes."""
    data = bytearray(header.ljust(64, b"\0")) + notes
    struct.pack_into("<Q", data, 32, len(data))
    struct.pack_into("<H", data, 56, number)
    return bytes(data + struct.pack("<IIQQQQQQ", _PT_NOTE, 4, 64, 0, 0, len(notes), len(notes), 4) * number)


def _library_header() -> bytes:
    return b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)


def _with_sections(data: bytes, rows: Sequence[tuple[int, ...]], names: tuple[int, int]) -> bytes:
    """Put these section headers, and one of their names at an offset and of a size, behind a file."""
    data += bytes(-len(data) % 8)
    made = bytearray(data)
    struct.pack_into("<Q", made, 40, len(data))
    struct.pack_into("<HHH", made, 58, 64, len(rows) + 2, len(rows) + 1)
    all_rows = [(0,) * 10, *rows, (0, 3, 0, 0, *names, 0, 0, 1, 0)]
    return bytes(made) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in all_rows)


def test_the_build_id_is_searched_only_in_the_first_notes() -> None:
    """4,000 segments of 1,024 notes, 236 KB, took 18 s."""
    build_id = struct.pack("<III", 4, 2, 3) + b"GNU\0\xab\xcd\0\0"
    other = struct.pack("<III", 0, 0, 9)
    assert read_elf(_with_segments(_library_header(), other * 1023 + build_id, 1), name="x").build_id == "abcd"
    start = time.process_time()
    assert read_elf(_with_segments(_library_header(), other * 1024 + build_id, 4000), name="x").build_id is None
    assert time.process_time() - start < 4


def test_a_code_object_whose_segments_share_the_same_notes_is_refused() -> None:
    """2,000 segments with the metadata of 4,000 kernels, 180 KB, took 12 s and 1.7 GB."""
    kernels = [{".name": f"abcde{number}"} for number in range(40)]
    note = msgspec.msgpack.encode({"amdhsa.version": [1, 2], "amdhsa.kernels": kernels})
    notes = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0" + note + bytes(-len(note) % 4)
    place = CodePlace("x")
    assert len(kernel_names(memoryview(_with_segments(code_object_header("gfx906"), notes, 2)), place=place)) == 40
    with pytest.raises(ElfError, match=r"x: .*notes that total more than \d+ bytes; expected notes that don't overlap"):
        read_code_object(memoryview(_with_segments(code_object_header("gfx906"), notes, 200)), place=place)


def test_sections_that_share_one_offload_binary_are_refused() -> None:
    """400 sections of 500 images with 64 strings each, 47 KB, took a minute."""
    strings_at, text_at = 32 + 40, 32 + 40 + 24
    binary = struct.pack("<4sIQQQ", b"\x10\xff\x10\xad", 2, text_at + 16, 32, 1)
    binary += struct.pack("<HHIQQQQ", 0, 4, 0, strings_at, 1, 0, 0) + struct.pack("<QQQ", text_at, text_at + 5, 6)
    binary += b"arch\0gfx906".ljust(16, b"\0")
    header = bytearray(_library_header())
    struct.pack_into("<H", header, 16, 1)
    data = bytes(header) + binary + _NAMES
    row, names = (1, 1, 0, 0, 64, len(binary), 0, 0, 8, 0), (64 + len(binary), len(_NAMES))
    images = read_offload_images(memoryview(_with_sections(data, [row], names)), name="x")
    assert [str(image.target) for image in images] == ["gfx906"]
    with pytest.raises(
        DeviceCodeError, match=r"x: offset 0x40: a section \.llvm\.offloading overlaps another such section"
    ):
        read_offload_images(memoryview(_with_sections(data, [row] * 400, names)), name="x")


def test_sections_are_sorted_in_linear_time() -> None:
    """16,000 of them took 8 s, and four times as many sixteen times that."""
    sections = [ElfSection("", 0, 1, 2 if number % 2 else 0, number, 0, 0, 0, 0, 1, 0) for number in range(60_000)]
    start = time.process_time()
    table = order_sections(sections, 0)
    assert [section.address for section in table.sections[:3]] == [0, 1, 3]
    assert table.numbers[2] == 30_001
    assert time.process_time() - start < 4


def test_setting_a_run_path_in_a_file_with_many_dynamic_sections_is_refused() -> None:
    """All symbols were searched for each, which took more than a minute."""
    library = (ROOT / "tests/fixtures/elf/liblld.so").read_bytes()
    library += bytes(-len(library) % 8)
    rows = [(0, 6, 2, 0, len(library), 0, 0, 0, 8, 16)] * 200 + [(0, 2, 0, 0, len(library), 24_000, 0, 0, 8, 24)] * 200
    data = _with_sections(library + bytes(24_000), rows, (len(library), 1))
    with pytest.raises(ElfError, match="x: 200 dynamic sections; expected one, as in every linked file"):
        plan_runpath(data, "x" * 700, RunpathTag.RUNPATH, name="x")
