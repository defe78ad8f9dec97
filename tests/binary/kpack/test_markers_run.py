"""Tests of `rocwheel.binary.kpack.markers`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.elf.header import ElfBytes, read_header, read_section_table
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.markers import Marker, SplitLibrary, read_split_library
from rocwheel.core.errors import InputError
from tests.support.damage import damaged
from tests.support.kpack_files import build_split_library
from tests.support.kpack_reader import Unit, units_of
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = needs_compiler

ONE = Marker("lib/libx.so", ("../.kpack/x_@GFXARCH@.kpack",))
TWO = Marker("lib/libx.so", ("../.kpack/x.rest_@GFXARCH@.kpack", "/opt/x.kpack"))


def read(data: bytes) -> SplitLibrary | None:
    return read_split_library(memoryview(data), name="libx.so")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library of three wrappers, of which two are of one bundle and one has a marker of its own."""
    return build_split_library(tmp_path_factory.mktemp("split") / "libx.so", [ONE, TWO], [(0, 0), (0, 0), (7, 1)])


def section_offset(data: bytes | bytearray, name: str) -> int:
    source = ElfBytes(memoryview(data), "libx.so")
    return next(s.offset for s in read_section_table(source, read_header(source)) if s.name == name)


def test_each_wrapper_has_an_index_and_a_marker(library: Path) -> None:
    split = read(library.read_bytes())
    assert split is not None
    assert [(unit.index, unit.marker) for unit in split.units] == [(0, ONE), (0, ONE), (7, TWO)]


def test_an_independent_reader_finds_the_same_units(library: Path) -> None:
    assert units_of(library) == [
        Unit("lib/libx.so#0", ONE.search_paths),
        Unit("lib/libx.so#0", ONE.search_paths),
        Unit("lib/libx.so#7", TWO.search_paths),
    ]


@pytest.mark.parametrize("name", ["v22/libtwo.plain.so", "v22/saxpy.hipfb", "elf/gfx906.co", "elf/libanswer.so.1"])
def test_a_file_that_was_not_split_has_no_units(name: str) -> None:
    assert read((FIXTURES / name).read_bytes()) is None


def test_a_mix_of_bundle_and_kpack_wrappers_is_refused(library: Path) -> None:
    data = bytearray(library.read_bytes())
    offset = section_offset(data, ".hipFatBinSegment")
    data[offset : offset + 4] = b"FPIH"
    message = f"libx.so: offset {offset:#x}: 1 wrapper for bundles and 2 for kpack archives; expected wrappers"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}"):
        read(bytes(data))


def test_a_library_without_markers_is_refused(library: Path) -> None:
    data = library.read_bytes().replace(b".rocm_kpack_ref", b".rocm_kpack_raf")
    with pytest.raises(KpackError, match=r"^libx.so: offset 0x0: wrappers for a kpack archive, but no .rocm_kpack_ref"):
        read(data)


def test_a_wrapper_that_points_outside_the_marker_section_is_refused(library: Path) -> None:
    data = bytearray(library.read_bytes())
    split = read(bytes(data))
    assert split is not None
    source = ElfBytes(memoryview(data), "libx.so")
    marker = next(s for s in read_section_table(source, read_header(source)) if s.name == ".rocm_kpack_ref")
    addend = data.index(marker.address.to_bytes(8, "little"), section_offset(bytes(data), ".rela.dyn"))
    data[addend : addend + 8] = (marker.address + marker.size).to_bytes(8, "little")
    offset = split.units[0].offset
    message = (
        f"libx.so: offset {offset:#x}: a wrapper that points to address {marker.address + marker.size:#x}; expected "
        f"an address in .rocm_kpack_ref, which has {marker.size} bytes at {marker.address:#x}"
    )
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        read(bytes(data))


def test_a_damaged_marker_is_refused_with_its_offset(library: Path) -> None:
    data = bytearray(library.read_bytes())
    offset = section_offset(data, ".rocm_kpack_ref")
    data[offset] = 0xC1
    with pytest.raises(KpackError, match=f"^libx.so: offset {offset:#x}: the byte 0xc1"):
        read(bytes(data))


def test_a_damaged_library_is_reported_by_name(library: Path) -> None:
    @given(damaged([library.read_bytes()]))
    def check(content: bytes) -> None:
        try:
            read(content)
        except InputError as e:
            assert str(e).startswith("libx.so")  # noqa: PT017

    check()


def test_a_marker_shared_by_many_wrappers_is_read_once(tmp_path: Path) -> None:
    """A library of 64 KB, of 1,000 wrappers with one marker, took 5 s."""
    marker = Marker("lib/libx.so", ("../x.kpack",), ("7",) * 20_000)
    data = build_split_library(tmp_path / "libx.so", [marker], [(0, 0)] * 1_000).read_bytes()
    start = time.process_time()
    split = read(data)
    assert time.process_time() - start < 2
    assert split is not None
    assert [unit.marker for unit in split.units] == [marker] * 1_000
