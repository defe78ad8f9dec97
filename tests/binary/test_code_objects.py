"""Tests of `rocwheel.binary.code_objects`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.code_objects import (
    BundleEntryId,
    CodePlace,
    DeviceCodeError,
    TargetId,
    encode_flags,
    machine_of,
    machine_of_number,
    parse_target_id,
    processor_of,
    read_code_object,
)
from rocwheel.binary.elf.header import ElfError
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from tests.support.device_files import Fixture


SETTINGS = st.sampled_from([None, True, False])
TARGETS = st.builds(
    TargetId, st.sampled_from(["gfx906", "gfx90a", "gfx9-4-generic", "amdgcnspirv"]), sramecc=SETTINGS, xnack=SETTINGS
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("gfx1030", TargetId("gfx1030")),
        ("gfx90a:xnack-", TargetId("gfx90a", xnack=False)),
        ("gfx90a:xnack+:sramecc-", TargetId("gfx90a", sramecc=False, xnack=True)),
        ("gfx9-4-generic:xnack+", TargetId("gfx9-4-generic", xnack=True)),
    ],
)
def test_a_target_id_is_parsed(text: str, target: TargetId) -> None:
    assert parse_target_id(text) == target


def test_features_are_printed_in_canonical_order() -> None:
    assert str(parse_target_id("gfx90a:xnack+:sramecc-")) == "gfx90a:sramecc-:xnack+"


@given(TARGETS)
def test_target_ids_round_trip_through_text(target: TargetId) -> None:
    assert parse_target_id(str(target)) == target


@given(TARGETS, st.sampled_from(["hip", "hipv4", "openmp"]))
def test_entry_ids_round_trip_through_text(target: TargetId, kind: str) -> None:
    entry = BundleEntryId(kind, "amdgcn-amd-amdhsa-", target)
    assert BundleEntryId.parse(str(entry)) == entry


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the processor ''"),
        ("GFX906", "the processor 'GFX906'"),
        ("gfx906-", "the processor 'gfx906-'"),
        ("gfx906:xnack", "the feature 'xnack'"),
        ("gfx906:tgsplit+", "the feature 'tgsplit+'"),
        ("gfx906:xnack+:xnack-", "xnack, which occurs twice"),
        ("gfx906:", "the feature ''"),
    ],
)
def test_a_bad_target_id_is_refused_with_the_faulty_part(text: str, part: str) -> None:
    message = (
        f"--keep: {text!r} isn't a target ID because of {part}; expected a processor and at most one setting each "
        "for sramecc "
        "and xnack, such as gfx90a:sramecc+:xnack-"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        parse_target_id(text, source="--keep")


@pytest.mark.parametrize(
    ("text", "kind", "triple", "target"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4", "amdgcn-amd-amdhsa-", TargetId("gfx90a", xnack=False)),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx906", "hip", "amdgcn-amd-amdhsa-unknown", TargetId("gfx906")),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "hipv4", "amdgcn-amd-amdhsa-", TargetId("gfx9-4-generic")),
        ("hipv4-spirv64-amd-amdhsa--amdgcnspirv", "hipv4", "spirv64-amd-amdhsa-", TargetId("amdgcnspirv")),
        ("host-x86_64-unknown-linux", "host", "x86_64-unknown-linux", None),
        ("host-x86_64-unknown-linux--", "host", "x86_64-unknown-linux", None),
        ("host-x86_64-pc-linux-gnu-", "host", "x86_64-pc-linux-gnu", None),
    ],
)
def test_entry_ids_from_every_compiler_are_parsed(text: str, kind: str, triple: str, target: TargetId | None) -> None:
    assert BundleEntryId.parse(text) == BundleEntryId(kind, triple, target)


@pytest.mark.parametrize("text", ["", "gfx906", "hipv4-amdgcn-amd-amdhsa-gfx906", "cuda-a-b-c--gfx906", "host"])
def test_text_that_is_not_an_entry_id_is_refused(text: str) -> None:
    message = (
        f"libx.so: {text!r} isn't a bundle entry ID; expected host-TRIPLE or KIND-ARCH-VENDOR-OS-ENVIRONMENT-TARGET, "
        "where KIND is hip, hipv4, or openmp"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        BundleEntryId.parse(text, source="libx.so")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("gfx90a", "gfx90a", id="plain"),
        pytest.param("gfx90a:xnack+", "gfx90a", id="with a feature"),
        pytest.param("gfx90a:sramecc-:xnack+", "gfx90a", id="with two features"),
        pytest.param("gfx9-4-generic:xnack-", "gfx9-4-generic", id="generic"),
    ],
)
def test_the_processor_of_a_target_id_excludes_features(target: str, expected: str) -> None:
    assert processor_of(target) == expected


@pytest.mark.parametrize(
    ("entry", "new", "renamed"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", "gfx1031", "hipv4-amdgcn-amd-amdhsa--gfx1031"),
        ("hip-amdgpu10.30-amd-amdhsa--gfx1030", "gfx1031", "hip-amdgpu10.31-amd-amdhsa--gfx1031"),
        ("hip-amdgpu9-amd-amdhsa--gfx9-generic", "gfx900", "hip-amdgpu9.00-amd-amdhsa--gfx900"),
        ("hip-amdgpu10.1-amd-amdhsa--gfx10-1-generic", "gfx1010", "hip-amdgpu10.10-amd-amdhsa--gfx1010"),
        ("hip-amdgpu12.50-amd-amdhsa--gfx1250", "gfx1250-strict", "hip-amdgpu12.50-amd-amdhsa--gfx1250-strict"),
    ],
)
def test_a_retargeted_entry_id_contains_the_new_processor_everywhere(entry: str, new: str, renamed: str) -> None:
    assert str(BundleEntryId.parse(entry).retargeted(parse_target_id(new))) == renamed


PLACE = CodePlace("x.co")


def code_of(data: memoryview, target: str) -> memoryview:
    bundle = read_offload_bundle(data, place=PLACE)
    [entry] = [entry for entry in bundle.device_entries if str(entry.target) == target]
    return data[entry.offset : entry.stop]


@pytest.mark.parametrize(
    ("name", "target", "version", "flags"),
    [
        ("v16/saxpy.hipfb", "gfx906", 4, 0x52F),
        ("v19/saxpy.hipfb", "gfx90a:xnack+", 5, 0x73F),
        ("v22/saxpy.hipfb", "gfx90a:xnack-", 6, 0x63F),
        ("v23/saxpy.hipfb", "gfx1030", 6, 0x36),
        ("hip/fam.gfx1100.hipfb", "gfx11-generic", 6, 0x1000054),
    ],
)
def test_the_target_and_version_are_read_from_the_header(
    fixture: Fixture, name: str, target: str, version: int, flags: int
) -> None:
    code = read_code_object(code_of(fixture(name), target), place=PLACE)
    assert (str(code.target), code.version, code.flags) == (target, version, flags)


@pytest.mark.parametrize(("name", "version"), [("v16/vadd.cov2.hipfb", 2), ("v16/vadd.cov3.hipfb", 3)])
def test_old_versions_store_features_elsewhere(fixture: Fixture, name: str, version: int) -> None:
    code = read_code_object(code_of(fixture(name), "gfx906"), place=PLACE)
    assert (code.version, code.target) == (version, TargetId("gfx906", sramecc=True, xnack=True))


@pytest.mark.parametrize("llvm", ["16", "19", "22", "23"])
def test_machine_numbers_and_flags_agree_with_llvm(fixture: Fixture, llvm: str) -> None:
    rows = [line.split() for line in bytes(fixture(f"mach/flags.{llvm}")).decode().splitlines()]
    known = [(name, int(flags, 16)) for name, flags, *_ in rows if int(flags, 16)]
    assert len(known) >= 38
    for name, flags in known:
        machine = machine_of_number(flags & 0xFF)
        assert machine is not None
        assert machine.processor == name
        written = encode_flags(TargetId(name), place=PLACE)
        assert written & 0xFFFFFF == flags & 0xFFFFFF
        assert written == flags or int(llvm) < 22, name


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("gfx90a:sramecc+:xnack+", 0xF3F),
        ("gfx90a:sramecc-:xnack-", 0xA3F),
        ("gfx942:sramecc+:xnack-", 0xE4C),
        ("gfx1010:xnack-", 0x233),
        ("gfx1031", 0x37),
    ],
)
def test_the_flags_of_a_target_agree_with_the_compiler(target: str, flags: int) -> None:
    assert encode_flags(parse_target_id(target), place=PLACE) == flags


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gfx1", "x.co: offset 0x0: no machine number is known for 'gfx1'"),
        ("gfx1030:xnack-", "x.co: offset 0x0: gfx1030 doesn't have the feature xnack"),
        ("gfx900:sramecc+", "x.co: offset 0x0: gfx900 doesn't have the feature sramecc"),
    ],
)
def test_encoding_the_flags_of_an_impossible_target_is_refused(target: str, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        encode_flags(parse_target_id(target), place=PLACE)


def test_a_processor_without_a_machine_number_is_unknown() -> None:
    assert machine_of("gfx1") is None
    assert machine_of_number(0) is None


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ((0x12, b"\x3e\x00"), "expected a code object (an ELF file for AMDGPU and HSA)"),
        ((7, b"\x00"), "expected a code object (an ELF file for AMDGPU and HSA)"),
        ((8, b"\x05"), "a code object with ABI version 5; expected 0 to 4"),
        (
            (0x20, b"\xff\xff\xff"),
            "the program header table would span 0xffffff to 0x10001f7",
        ),
        ((0x40 + 8 * 56 + 8, b"\xff\xff"), "its notes would span 0xffff to 0x10273, but the file ends at 0xe70"),
    ],
    ids=["machine", "abi", "abi version", "program headers", "notes"],
)
def test_a_damaged_code_object_is_refused(fixture: Fixture, edit: tuple[int, bytes], message: str) -> None:
    offset, new = edit
    data = bytearray(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    data[offset : offset + len(new)] = new
    with pytest.raises((DeviceCodeError, ElfError), match=f"^x.co: offset 0x0: .*{re.escape(message)}"):
        read_code_object(memoryview(data), place=PLACE)
