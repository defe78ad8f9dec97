"""Tests of `rocwheel.binary.bundles.plain`."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.plain import BundlePart, OffloadBundle, read_offload_bundle, write_offload_bundle
from rocwheel.binary.code_objects import CodePlace
from rocwheel.binary.kind import BUNDLE_MAGIC
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data

if TYPE_CHECKING:
    from tests.support.device_files import Fixture


PLACE = CodePlace("libx.so", 0x1000, 3)
TRUNCATED = "where the data ends. The file may be truncated."
HOST = "host-x86_64-unknown-linux--"
GFX906 = "hipv4-amdgcn-amd-amdhsa--gfx906"


def read(data: bytes) -> OffloadBundle:
    return read_offload_bundle(memoryview(data), place=PLACE)


def header(*entries: tuple[int, int, str]) -> bytes:
    rows = [struct.pack("<QQQ", offset, size, len(spelling)) + spelling.encode() for offset, size, spelling in entries]
    return BUNDLE_MAGIC + struct.pack("<Q", len(entries)) + b"".join(rows)


@pytest.mark.parametrize(
    ("name", "targets", "host"),
    [
        (
            "v16/saxpy.hipfb",
            ["gfx1030", "gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-"],
            "host-x86_64-unknown-linux",
        ),
        (
            "v19/saxpy.hipfb",
            ["gfx1030", "gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942"],
            "host-x86_64-unknown-linux--",
        ),
        (
            "v23/saxpy.hipfb",
            ["gfx1030", "gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942"],
            "host-x86_64-unknown-linux-gnu-",
        ),
        ("edge/a1.hipfb", ["gfx1030", "gfx1100"], "host-x86_64-unknown-linux-gnu-"),
    ],
)
def test_bundles_from_every_compiler_can_be_read(fixture: Fixture, name: str, targets: list[str], host: str) -> None:
    bundle = read_offload_bundle(fixture(name), place=PLACE)
    assert [str(target) for target in bundle.targets] == targets
    assert bundle.entries[0].spelling == host
    assert bundle.size == len(fixture(name))
    assert bundle.find_problems() == ()


def outcome(data: bytes) -> str:
    try:
        read(data)
    except InputError as e:
        return str(e)
    return "bundle"


@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_give_a_bundle_or_an_input_error(data: bytes) -> None:
    result = outcome(BUNDLE_MAGIC + data)
    assert result == "bundle" or result.startswith("libx.so: bundle 3 at offset 0x1000: ")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("edge/empty.n0.hipfb", "the bundle has no entries"),
        ("edge/hostonly.hipfb", "the bundle has no device code"),
        ("edge/dup.hipfb", "the entry 'hipv4-amdgcn-amd-amdhsa--gfx1030' occurs more than once"),
        ("edge/zerodev.hipfb", "the entry 'hipv4-amdgcn-amd-amdhsa--gfx1030' is empty"),
    ],
)
def test_a_valid_bundle_that_some_readers_refuse_is_reported(fixture: Fixture, name: str, problem: str) -> None:
    assert read_offload_bundle(fixture(name), place=PLACE).find_problems() == (problem,)


def test_a_header_larger_than_the_runtime_reads_is_reported() -> None:
    parts = [BundlePart(f"hip-amdgcn-amd-amdhsa--gfx{number}", (memoryview(b"x"),)) for number in range(1000, 1090)]
    bundle = read(join_data(write_offload_bundle(parts)))
    assert bundle.find_problems() == ("its header has 4892 bytes, but the runtime reads at most 4096 bytes",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"__CLANG", "7 bytes, too few for a bundle; expected at least 32"),
        (b"\x7fELF" + bytes(28), "starts with b'\\x7fELF"),
        (
            BUNDLE_MAGIC + struct.pack("<Q", 1 << 60),
            "1152921504606846976 entries declared in a header of at most 32 bytes",
        ),
        (header((64, 0, HOST))[:-1], "the ID of entry 0 of 1 is 27 bytes long"),
        (
            header((100, 8, GFX906)),
            f"the entry {GFX906!r} ends at byte 108 in the bundle; expected at most 87, {TRUNCATED}",
        ),
        (header((0, 8, GFX906)), "the entry 'hipv4-amdgcn-amd-amdhsa--gfx906' at 0x0 overlaps the header"),
        (
            header((200, 8, HOST), (204, 8, GFX906)) + bytes(300),
            "the entry 'hipv4-amdgcn-amd-amdhsa--gfx906' at 0xcc overlaps the entry 'host-x86_64-unknown-linux--'",
        ),
        (
            header((1 << 63, 1 << 63, GFX906)),
            "the entry 'hipv4-amdgcn-amd-amdhsa--gfx906' ends at byte 18446744073709551616 in the bundle",
        ),
        (header((0, 0, "hip-gfx906")) + bytes(32), "'hip-gfx906' isn't a bundle entry ID"),
        (header(*[(0, 0, HOST)] * 1025), "1025 entries; expected at most 1024"),
    ],
    ids=["short", "magic", "count", "id", "past the end", "in the header", "overlap", "wrap", "spelling", "many"],
)
def test_a_damaged_bundle_is_refused_with_its_offset(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"libx.so: bundle 3 at offset 0x1000: {message}")):
        read(data)


def test_ambiguous_targets_with_and_without_features_are_reported() -> None:
    parts = [
        BundlePart(f"hipv4-amdgcn-amd-amdhsa--{target}", (memoryview(b"x"),))
        for target in ("gfx90a", "gfx90a:xnack+", "gfx906")
    ]
    data = memoryview(join_data(write_offload_bundle(parts)))
    problem = "the targets gfx90a and gfx90a:xnack+ are ambiguous: one sets features that the other doesn't set"
    assert read_offload_bundle(data, place=CodePlace("x")).find_problems() == (problem,)


PARTS_PLACE = CodePlace("x", 0x1000, 0)
SPELLINGS = st.sampled_from(
    [
        "host-x86_64-unknown-linux--",
        "hipv4-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx1030",
    ]
)
PARTS = st.lists(
    st.builds(lambda spelling, data: BundlePart(spelling, (memoryview(data),) if data else ()), SPELLINGS, st.binary()),
    max_size=6,
)


@pytest.mark.parametrize("name", ["v16/saxpy.hipfb", "v19/saxpy.hipfb", "v22/saxpy.hipfb", "edge/hostonly.hipfb"])
def test_a_bundle_is_written_exactly_as_clang_writes_bundles(fixture: Fixture, name: str) -> None:
    data = fixture(name)
    parts = [
        BundlePart(entry.spelling, (data[entry.offset : entry.stop],) if entry.size else ())
        for entry in read_offload_bundle(data, place=PARTS_PLACE).entries
    ]
    assert join_data(write_offload_bundle(parts)) == data


@given(PARTS, st.sampled_from([1, 16, 4096]))
def test_written_bundles_round_trip(parts: list[BundlePart], alignment: int) -> None:
    data = join_data(write_offload_bundle(parts, alignment=alignment))
    bundle = read_offload_bundle(memoryview(data), place=PARTS_PLACE)
    assert [(entry.spelling, data[entry.offset : entry.stop]) for entry in bundle.entries] == [
        (part.spelling, join_data(part.payload)) for part in parts
    ]
    assert all(entry.offset % alignment == 0 for entry in bundle.entries)
    assert bundle.size == len(data)
