"""Tests of `rocwheel.binary.kpack.markers`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.markers import (
    FoundFile,
    Marker,
    check_sizes,
    encode_markers,
    find_archives,
    match_units,
    read_marker,
)
from rocwheel.core.errors import RocwheelError

if TYPE_CHECKING:
    from pathlib import Path


PLACE = CodePlace("libx.so", 0x40)
ONE = Marker("lib/libx.so", ("../.kpack/blas_@GFXARCH@.kpack",))
TWO = Marker("lib/libx.so", ("../.kpack/blas.part_@GFXARCH@.kpack", "/opt/x y/ü_@GFXARCH@.kpack"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
MARKERS = st.builds(Marker, TEXTS, st.lists(TEXTS, min_size=1, max_size=5).map(tuple))


def test_a_single_marker_is_the_map_that_readers_expect() -> None:
    section, starts = encode_markers([ONE])
    assert starts == (0,)
    assert msgspec.msgpack.decode(section) == {
        "kernel_name": "lib/libx.so",
        "kpack_search_paths": ["../.kpack/blas_@GFXARCH@.kpack"],
    }


@given(st.lists(MARKERS, min_size=1, max_size=6))
def test_each_marker_in_a_section_is_read_from_its_start(markers: list[Marker]) -> None:
    section, starts = encode_markers(markers)
    assert [read_marker(memoryview(section)[start:], place=PLACE) for start in starts] == markers


def test_several_markers_form_one_value_that_starts_with_the_first_marker() -> None:
    section, _ = encode_markers([ONE, TWO])
    value = msgspec.msgpack.decode(section)
    assert (value["kernel_name"], value["kpack_search_paths"]) == (ONE.kernel_name, list(ONE.search_paths))


@pytest.mark.parametrize(
    ("marker", "found"),
    [
        (Marker("x", ()), "x: offset 0x0: a marker with 0 search paths; expected 1 to 32"),
        (Marker("x", ("a",) * 33), "x: offset 0x0: a marker with 33 search paths; expected 1 to 32"),
        (Marker("x", ("",)), "x: offset 0x0: the search path ''; expected 1 to 4096 bytes"),
        (Marker("", ("a",)), ": offset 0x0: a kernel name of 0 bytes; expected 1 to 1013"),
        (
            Marker("a\udcff", ("a",)),
            "the kernel name 'a\\udcff'; expected UTF-8, because a marker is text. Rename the library.",
        ),
        (Marker("é" * 507, ("a",)), "a kernel name of 1014 bytes; expected 1 to 1013"),
    ],
)
def test_a_marker_that_some_reader_refuses_is_not_written(marker: Marker, found: str) -> None:
    with pytest.raises(KpackError, match=re.escape(found)):
        encode_markers([marker])


def test_markers_beyond_the_limit_of_readers_are_not_written() -> None:
    markers = [Marker("x", (f"{number:04000}",)) for number in range(17)]
    with pytest.raises(
        KpackError, match=r"17 markers of .* bytes in total; expected at most 65536, because readers read no further"
    ):
        encode_markers(markers)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "MessagePack that ends early, after 0 bytes"),
        (b"\x82\xabkernel_name", "MessagePack that ends early, after 13 bytes"),
        (b"\xc1", "the byte 0xc1 after 0 bytes, which doesn't begin a MessagePack value"),
        (b"\x90", "a marker that can't be read (Expected `object`, got `array`)"),
        (b"\x80", "a marker without kernel_name and kpack_search_paths"),
        (msgspec.msgpack.encode({"kernel_name": "x"}), "a marker without kpack_search_paths"),
        (
            msgspec.msgpack.encode({"kernel_name": "x", "kpack_search_paths": []}),
            "a marker without any search path; expected at least one",
        ),
        (
            msgspec.msgpack.encode({"kernel_name": 5, "kpack_search_paths": ["x"]}),
            "a marker's kernel_name that can't be read (Expected `str`, got `int`)",
        ),
        (
            msgspec.msgpack.encode({"kernel_name": "x", "kpack_search_paths": "x"}),
            "a marker's kpack_search_paths that can't be read (Expected `array`, got `str`)",
        ),
        (b"\x82\xa1a\x01\xa1a\x02", "a marker with 2 keys, but only 1 distinct key; expected each key only once"),
        (b"\xdd\xff\xff\xff\xff", "MessagePack that ends early, after 5 bytes"),
    ],
)
def test_a_malformed_marker_is_refused_with_its_offset(data: bytes, found: str) -> None:
    with pytest.raises(KpackError, match=f"^libx.so: offset 0x40: {re.escape(found)}"):
        read_marker(memoryview(data), place=PLACE)


def test_a_marker_that_exceeds_the_limit_of_readers_is_refused() -> None:
    data = msgspec.msgpack.encode({"kernel_name": "x", "kpack_search_paths": ["y" * (64 << 10)]})
    with pytest.raises(KpackError, match="MessagePack that ends early, after 65536 bytes"):
        read_marker(memoryview(data), place=PLACE)


def test_entries_and_code_checks_survive_encoding() -> None:
    marker = Marker("x", ("y",), ("host-x86_64", "hipv4-amdgcn-amd-amdhsa--gfx906"), (0, check_sizes([(0, 10)])))
    section, _ = encode_markers([marker])
    assert read_marker(memoryview(section), place=PLACE) == marker


def test_code_checks_are_ignored_unless_there_is_one_for_each_entry() -> None:
    data = msgspec.msgpack.encode({"kernel_name": "x", "kpack_search_paths": ["y"], "code_checks": [1, 2]})
    assert read_marker(memoryview(data), place=PLACE) == Marker("x", ("y",))


@pytest.mark.parametrize(
    ("sizes", "same"),
    [
        pytest.param([(1, 20), (0, 10)], True, id="another order"),
        pytest.param([(0, 10), (1, 21)], False, id="another size"),
        pytest.param([(0, 20), (1, 10)], False, id="sizes exchanged"),
        pytest.param([(0, 10)], False, id="a unit less"),
    ],
)
def test_the_size_check_distinguishes_units(sizes: list[tuple[int, int]], same: bool) -> None:
    assert (check_sizes(sizes) == check_sizes([(0, 10), (1, 20)])) is same


def test_unknown_keys_are_ignored() -> None:
    data = msgspec.msgpack.encode({"a": [1.5, None, {"b": b"c"}], "kernel_name": "x", "kpack_search_paths": ["y"]})
    assert read_marker(memoryview(data), place=PLACE) == Marker("x", ("y",))


@given(st.binary(max_size=200))
def test_random_bytes_are_reported_by_name(data: bytes) -> None:
    with pytest.raises(RocwheelError, match=r"^libx.so: offset 0x40: "):
        read_marker(memoryview(data), place=PLACE)


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def found(root: Path, search_path: str) -> list[str]:
    return [str(file.path.relative_to(root)) for file in find_archives(root / "lib", search_path)]


def test_the_placeholder_matches_every_target(tmp_path: Path) -> None:
    names = ["gfx906", "gfx90a:xnack+", "gfx11-generic", "gfx1250-strict"]
    make(tmp_path, "lib/x", *(f".kpack/blas_{name}.kpack" for name in names))
    expected = [FoundFile(tmp_path / f".kpack/blas_{name}.kpack", name) for name in sorted(names)]
    assert find_archives(tmp_path / "lib", "../.kpack/blas_@GFXARCH@.kpack") == tuple(expected)


@pytest.mark.parametrize("name", ["blas_lib_gfx906.kpack", "blas_gfx906.kpack.bak", "blas_.kpack", "blas_x y.kpack"])
def test_an_archive_with_another_name_is_not_found(tmp_path: Path, name: str) -> None:
    make(tmp_path, "lib/x", f".kpack/{name}")
    assert found(tmp_path, "../.kpack/blas_@GFXARCH@.kpack") == []


def test_only_the_first_placeholder_is_replaced(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "gfx906/gfx906.kpack", "gfx906/@GFXARCH@.kpack")
    assert found(tmp_path, "../@GFXARCH@/@GFXARCH@.kpack") == ["gfx906/@GFXARCH@.kpack"]


def test_a_path_without_a_placeholder_is_one_file(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "all.kpack")
    assert found(tmp_path, "../all.kpack") == ["all.kpack"]
    assert found(tmp_path, str(tmp_path / "all.kpack")) == ["all.kpack"]
    assert found(tmp_path, "../none.kpack") == []
    assert found(tmp_path, "..") == []


def test_glob_characters_in_paths_are_literal(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "a/x_gfx906.kpack", "[a]/x_gfx906.kpack")
    assert found(tmp_path, "../[a]/x_@GFXARCH@.kpack") == ["[a]/x_gfx906.kpack"]


def test_search_paths_are_relative_to_the_real_folder_of_the_library(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", ".kpack/x_gfx906.kpack")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "far" / "away" / "link").symlink_to(tmp_path / "lib")
    assert find_archives(tmp_path / "far/away/link", "../.kpack/x_@GFXARCH@.kpack") == (
        FoundFile(tmp_path / ".kpack/x_gfx906.kpack", "gfx906"),
    )


A, B, C = (frozenset({name, "common"}) for name in "abc")


@pytest.mark.parametrize(
    ("kernels", "reference", "expected"),
    [
        ({0: A, 1: B, 2: C}, {0: A, 1: B, 2: C}, {0: 0, 1: 1, 2: 2}),
        ({0: A, 1: C}, {0: A, 1: B, 2: C}, {0: 0, 1: 2}),
        ({0: B, 1: C}, {0: A, 1: B, 2: C}, {0: 1, 1: 2}),
        ({0: A}, {0: A, 1: A}, None),
        ({0: A, 1: B}, {0: A, 1: C}, None),
        ({}, {0: A}, None),
    ],
)
def test_units_are_matched_by_their_kernels(
    kernels: dict[int, frozenset[str]], reference: dict[int, frozenset[str]], expected: dict[int, int] | None
) -> None:
    assert match_units(kernels, reference) == expected
