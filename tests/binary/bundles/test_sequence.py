"""Tests of bundles that follow each other."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.sequence import iter_bundles, iter_entries, iter_entry
from rocwheel.binary.code_objects import DeviceCodeError
from rocwheel.core.reading import join_data

if TYPE_CHECKING:
    from tests.support.device_files import Fixture

PLAIN = join_data(write_offload_bundle([BundlePart("hipv4-amdgcn-amd-amdhsa--gfx906", (memoryview(b"code"),))]))
COMPRESSED = compress_bundle([memoryview(PLAIN)], version=3, level=3)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("edge/two.plain.fatbin", [(0, 16952), (20480, 16840)]),
        ("edge/two.ccob.fatbin", [(0, 2106), (4096, 1957)]),
        ("edge/two.v18.ccob.fatbin", [(0, 1844), (4096, 1612)]),
    ],
)
def test_every_bundle_of_a_linked_section_is_found(fixture: Fixture, name: str, places: list[tuple[int, int]]) -> None:
    bundles = list(iter_bundles(fixture(name), name=name))
    assert [(bundle.start, bundle.size) for bundle in bundles] == places
    assert [bundle.place.bundle for bundle in bundles] == [0, 1]


@pytest.mark.parametrize(("name", "size"), [("edge/big.19.ccob", 140956), ("edge/big.22.ccob", 140964)])
def test_a_bundle_of_gigabytes_with_an_expansion_ratio_above_200_is_refused(
    fixture: Fixture, name: str, size: int
) -> None:
    with pytest.raises(DeviceCodeError) as caught:
        list(iter_bundles(fixture(name), name="a.co"))
    assert str(caught.value) == (
        f"a.co: bundle 0 at offset 0x0: {size} bytes that decompress to 4613738496 bytes; "
        "expected at most 1 GiB, or 200 times its packed size. Don't unpack this file unless you trust its source."
    )


def test_a_bundle_up_to_one_gib_may_have_a_larger_expansion_ratio() -> None:
    data = bytearray(COMPRESSED)
    data[16:24] = (1 << 30).to_bytes(8, "little")
    [bundle] = iter_bundles(memoryview(data), name="a.co")
    assert bundle.raw_size == 1 << 30
    data[16:24] = ((1 << 30) + 1).to_bytes(8, "little")
    with pytest.raises(DeviceCodeError, match="decompress to 1073741825 bytes; expected at most 1 GiB"):
        list(iter_bundles(memoryview(data), name="a.co"))


@given(st.lists(st.tuples(st.sampled_from([PLAIN, COMPRESSED]), st.integers(0, 9000)), min_size=1, max_size=4))
def test_any_number_of_zeros_between_bundles_is_skipped(pieces: list[tuple[bytes, int]]) -> None:
    data = b"".join(bundle + bytes(padding) for bundle, padding in pieces)
    assert [bundle.size for bundle in iter_bundles(memoryview(data), name="x")] == [len(bundle) for bundle, _ in pieces]


def test_known_start_offsets_are_used_after_long_padding() -> None:
    data = memoryview(PLAIN + bytes(20000) + COMPRESSED)
    bundles = list(iter_bundles(data, name="x", starts=[0, len(PLAIN) + 20000]))
    assert [bundle.start for bundle in bundles] == [0, len(PLAIN) + 20000]


def test_nothing_is_read_between_long_padding_and_the_next_known_start_offset() -> None:
    start = len(PLAIN) + 30000
    data = memoryview(PLAIN + bytes(20000) + b"unread".ljust(10000) + COMPRESSED)
    assert [bundle.start for bundle in iter_bundles(data, name="x", starts=[0, start])] == [0, start]


@pytest.mark.parametrize("data", [PLAIN, COMPRESSED], ids=["plain", "compressed"])
def test_the_payload_of_an_entry_can_be_read(data: bytes) -> None:
    [bundle] = iter_bundles(memoryview(data), name="x")
    assert join_data(iter_entry(memoryview(data), bundle, bundle.plain.entries[0])) == b"code"


def test_entries_are_read_in_one_pass_over_their_bundle(fixture: Fixture) -> None:
    data = fixture("edge/two.ccob.fatbin")
    bundle = next(iter_bundles(data, name="x"))
    entries = bundle.plain.device_entries
    pieces = [(entry.spelling, len(piece)) for entry, piece in iter_entries(data, bundle, entries)]
    assert pieces == [(entry.spelling, entry.size) for entry in entries]


def test_garbage_between_bundles_is_refused_with_its_offset() -> None:
    message = (
        "libx.so: bundle 1 at offset 0x2004: b'\\x7fELF' where a bundle should start; "
        "expected b'__CLANG_OFFLOAD_BUNDLE__' or b'CCOB'"
    )
    with pytest.raises(DeviceCodeError, match=f"^{re.escape(message)}$"):
        list(iter_bundles(memoryview(PLAIN + b"\x7fELF"), name="libx.so", base=0x1000))


def test_the_error_for_garbage_after_a_bundle_suggests_a_wrong_declared_size() -> None:
    content = memoryview(hashlib.shake_256(b"code").digest(1 << 19))
    raw = list(write_offload_bundle([BundlePart("hipv4-amdgcn-amd-amdhsa--gfx906", (content,))]))
    data = bytearray(compress_bundle(raw, version=3, level=3))
    data[8:16] = (len(data) - 4).to_bytes(8, "little")
    message = (
        f"x: bundle 1 at offset {len(data) - 4:#x}: {bytes(data[-4:])!r} where a bundle should start; "
        "expected b'__CLANG_OFFLOAD_BUNDLE__' or b'CCOB'. "
        f"Bundle 0, before it, may be longer than the {len(data) - 4} bytes that its header declares."
    )
    with pytest.raises(DeviceCodeError, match=f"^{re.escape(message)}$"):
        list(iter_bundles(memoryview(data), name="x"))


def test_a_version_that_the_runtime_misreads_is_reported(fixture: Fixture) -> None:
    [bundle] = iter_bundles(fixture("v18/saxpy.ccob.hipfb"), name="x.hipfb")
    problem = "the bundle has compression version 1, which the runtime mistakes for a later version and rejects"
    assert bundle.find_problems() == (f"x.hipfb: bundle 0 at offset 0x0: {problem}",)
