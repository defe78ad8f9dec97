"""Tests of facts about device code, and of damaged files of all kinds."""

from __future__ import annotations

import re
import struct
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.compressed import Method, compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data
from rocwheel.device.editing.bundle import bundle_parts
from rocwheel.device.editing.patch import device_patch
from rocwheel.device.editing.prune import Prune
from rocwheel.device.reading.facts import list_device_code, read_device_facts
from rocwheel.device.reading.payload_facts import Look
from rocwheel.device.reading.target_facts import summarize_targets
from tests.support.damage import damaged
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.device.reading.device_facts import DeviceFacts

NAMES = ["v22/libtwo.plain.so", "v22/libtwo.rdcccob.so", "v19/vadd.plain.o", "v23/saxpy.rdc.o", "v22/saxpy.ccob.hipfb"]
EDIT = Prune((TargetId("gfx1030"),))


def facts_of(name: str, *, deep: bool = False) -> DeviceFacts:
    facts = read_device_facts(memoryview((FIXTURES / name).read_bytes()), name=name, look=Look(deep=deep))
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
def test_container_is_reported(name: str, container: str, wrappers: int, bundles: int) -> None:
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
def test_wrapper_that_points_at_no_bundle_is_reported(target: int) -> None:
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
    found = f"libx.so: wrapper at {first.offset:#x} does not point at a bundle (but at address {address:#x})"
    assert facts.problems == (found,)


@pytest.mark.slow
def test_bundle_that_is_checked_is_not_held() -> None:
    zeros = memoryview(bytes(1 << 20))
    raw = write_offload_bundle((BundlePart("hipv4-amdgcn-amd-amdhsa--gfx1030", (zeros,) * 300),))
    data = memoryview(compress_bundle(list(raw), version=3, level=1, method=Method.ZLIB))
    tracemalloc.start()
    try:
        facts = read_device_facts(data, name="x", look=Look(deep=True))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert facts is not None
    assert facts.problems == ()
    assert [(entry.size, entry.kernels) for entry in facts.bundles[0].entries] == [(300 << 20, None)]


def test_wrong_hash_of_a_bundle_is_reported_with_its_kernels() -> None:
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[24:32] = bytes(8)
    facts = read_device_facts(memoryview(data), name="x", look=Look(deep=True))
    assert facts is not None
    assert [entry.kernels for entry in facts.bundles[0].entries] == [1] * 6
    [problem] = facts.problems
    assert problem.startswith("x: bundle 0 at offset 0x0: its hash is 0000000000000000, ")


def bundle_with_headers_reversed(parts: dict[str, bytes]) -> bytes:
    """Return a bundle whose entries stand in the header in another order than their payloads."""
    places = {name: 4096 + (len(code) + 4096) * number for number, (name, code) in enumerate(parts.items())}
    data = bytearray(b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(parts)))
    for name, code in reversed(parts.items()):
        spelling = f"hipv4-amdgcn-amd-amdhsa--{name}".encode()
        data += struct.pack("<QQQ", places[name], len(code), len(spelling)) + spelling
    for name, code in parts.items():
        data = data.ljust(places[name], b"\0") + code
    return bytes(data)


def test_payloads_in_another_order_than_their_entries_are_distinguished() -> None:
    source = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    parts = bundle_parts(source, next(iter_bundles(source, name="")))
    payloads = {part.spelling.rpartition("--")[2]: join_data(part.payload) for part in parts}
    codes = {name: payloads[name].ljust(900_000, b"\0") for name in ("gfx1030", "gfx906", "gfx942")}
    raw = memoryview(bundle_with_headers_reversed(codes))
    data = memoryview(compress_bundle([raw], version=3, level=1))
    facts = read_device_facts(data, name="x", look=Look(deep=True))
    assert facts is not None
    assert facts.problems == ()
    assert [(e.target, e.kernels) for e in facts.bundles[0].entries] == [("gfx942", 1), ("gfx906", 1), ("gfx1030", 1)]


@pytest.mark.parametrize(("name", "is_told"), [("v22/saxpy.hipfb", True), ("v16/vadd.cov3.hipfb", False)])
def test_entry_whose_code_names_other_features_is_reported_where_flags_name_them(name: str, *, is_told: bool) -> None:
    source = memoryview((FIXTURES / name).read_bytes())
    parts = bundle_parts(source, next(iter_bundles(source, name="")))
    renamed = [BundlePart(re.sub("gfx906$", "gfx906:xnack-", part.spelling), part.payload) for part in parts]
    facts = read_device_facts(memoryview(join_data(write_offload_bundle(renamed))), name="x")
    assert facts is not None
    problem = "x: bundle 0 at offset 0x0: the entry 'hipv4-amdgcn-amd-amdhsa--gfx906:xnack-' holds code for gfx906"
    assert facts.problems == ((problem,) if is_told else ())


@pytest.mark.parametrize("is_bundled", [True, False], ids=["bundle", "code object"])
def test_damage_within_a_code_object_does_not_keep_it_from_being_listed(tmp_path: Path, *, is_bundled: bool) -> None:
    data = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    entry = next(iter_bundles(data, name="")).plain.device_entries[0]
    code = bytearray(data[entry.offset : entry.stop])
    code[0x238 + 20] = 0xC1
    path = tmp_path / "x.co"
    path.write_bytes(b"".join([data[: entry.offset], code, data[entry.stop :]]) if is_bundled else code)
    facts = list_device_code(path)
    entries = facts.bundles[0].entries if is_bundled else facts.entries
    assert [e.kernels for e in entries] == [None, *([1] * (len(entries) - 1))]
    where = f"{path}: bundle 0 at offset 0x0: " if is_bundled else f"{path}: offset 0x0: "
    [problem] = facts.problems
    assert problem.startswith(f"{where}a metadata note that is not MessagePack of a code object (")
    with pytest.raises(InputError, match=re.escape(problem)):
        read_device_facts(memoryview(path.read_bytes()), name=str(path))


def outcome(data: bytes) -> str:
    try:
        read_device_facts(memoryview(data), name="libx.so", look=Look(deep=True))
        device_patch(memoryview(data), name="libx.so", edit=EDIT, storage=Storage(level=1, limit=1 << 24))
    except InputError as e:
        return str(e)
    return "read"


@given(damaged([(FIXTURES / name).read_bytes() for name in NAMES]))
def test_damaged_file_gives_facts_or_one_error_that_names_it(data: bytes) -> None:
    result = outcome(data)
    assert result == "read" or result.startswith("libx.so")
