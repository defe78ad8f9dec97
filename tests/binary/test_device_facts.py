"""Tests of facts about device code, and of damaged files of all kinds."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given

from rocwheel.binary.bundle_storage import Storage
from rocwheel.binary.compressed_bundle import Method, compress_bundle
from rocwheel.binary.device_facts import DeviceFacts, read_device_facts, summarize_targets
from rocwheel.binary.device_patch import device_patch
from rocwheel.binary.fat_binary import read_fat_binary
from rocwheel.binary.offload_bundle import BundlePart, write_offload_bundle
from rocwheel.binary.target_id import TargetId
from rocwheel.errors import InputError
from rocwheel.targets.pruning import Prune
from tests.binary.damage import damaged

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = ["v22/libtwo.plain.so", "v22/libtwo.rdcccob.so", "v19/vadd.plain.o", "v23/saxpy.rdc.o", "v22/saxpy.ccob.hipfb"]
EDIT = Prune((TargetId("gfx1030"),))


def facts_of(name: str, *, deep: bool = False) -> DeviceFacts:
    facts = read_device_facts(memoryview((FIXTURES / name).read_bytes()), name=name, deep=deep)
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("name", "container", "wrappers", "bundles"),
    [
        ("v22/libtwo.plain.so", "fat binary", 2, 2),
        ("v22/libtwo.rdc.so", "fat binary", 2, 1),
        ("v23/saxpy.rdc.o", "object file", 0, 0),
        ("v22/saxpy.ccob.hipfb", "bundles", 0, 1),
    ],
)
def test_container_is_told(name: str, container: str, wrappers: int, bundles: int) -> None:
    facts = facts_of(name)
    assert (facts.container, facts.wrappers, len(facts.bundles)) == (container, wrappers, bundles)


def test_what_targets_take_is_summed_up() -> None:
    [first, *_] = summarize_targets(facts_of("v22/libtwo.plain.so"))
    assert (first.target, first.bundles, first.missing, first.size, first.stored_size, first.kernels) == (
        "gfx1030",
        2,
        0,
        7288,
        7288,
        2,
    )


def test_compressed_bundles_are_read_when_asked() -> None:
    shallow, deep = (summarize_targets(facts_of("v22/libtwo.ccob.so", deep=deep))[0] for deep in (False, True))
    assert (shallow.stored_size, shallow.kernels) == (None, None)
    assert deep.stored_size is not None
    assert (0 < deep.stored_size < deep.size, deep.kernels) == (True, 2)


@pytest.mark.parametrize("target", [64, 0x77777], ids=["inside a bundle", "outside of the section"])
def test_wrapper_that_points_at_no_bundle_is_told(target: int) -> None:
    data = bytearray((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    fat = read_fat_binary(memoryview(data), name="libx.so")
    assert fat is not None
    [first, _] = fat.wrappers
    assert first.pointer.stored_at is not None
    address = fat.section.address + target
    data[first.pointer.stored_at : first.pointer.stored_at + 8] = address.to_bytes(8, "little")
    facts = read_device_facts(memoryview(data), name="libx.so")
    assert facts is not None
    assert len(facts.bundles) == 2
    found = f"libx.so: wrapper at {first.offset:#x} points at no bundle (but at address {address:#x})"
    assert facts.problems == (found,)


def test_bundle_that_is_checked_is_not_held() -> None:
    zeros = memoryview(bytes(1 << 20))
    raw = write_offload_bundle((BundlePart("hipv4-amdgcn-amd-amdhsa--gfx1030", (zeros,) * 300),))
    data = memoryview(compress_bundle(list(raw), version=3, level=1, method=Method.ZLIB))
    tracemalloc.start()
    try:
        facts = read_device_facts(data, name="x", deep=True)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert facts is not None
    assert facts.problems == ()
    assert [(entry.size, entry.kernels) for entry in facts.bundles[0].entries] == [(300 << 20, None)]


def test_wrong_hash_of_a_bundle_is_told_beside_its_kernels() -> None:
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[24:32] = bytes(8)
    facts = read_device_facts(memoryview(data), name="x", deep=True)
    assert facts is not None
    assert [entry.kernels for entry in facts.bundles[0].entries] == [1] * 6
    [problem] = facts.problems
    assert problem.startswith("x: bundle 0 at offset 0x0: its hash is 0000000000000000, ")


def outcome(data: bytes) -> str:
    try:
        read_device_facts(memoryview(data), name="libx.so", deep=True)
        device_patch(memoryview(data), name="libx.so", edit=EDIT, storage=Storage(level=1, limit=1 << 24))
    except InputError as e:
        return str(e)
    return "read"


@given(damaged([(FIXTURES / name).read_bytes() for name in NAMES]))
def test_damaged_file_gives_facts_or_one_error_that_names_it(data: bytes) -> None:
    result = outcome(data)
    assert result == "read" or result.startswith("libx.so")
