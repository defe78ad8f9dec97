"""Tests of code objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.code_objects.code_object import encode_flags, read_code_object
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.code_objects.machine import machine_of, machine_of_number
from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.binary.elf.bytes import ElfError

if TYPE_CHECKING:
    from tests.support.device_files import Fixture

PLACE = Place("x.co")


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
def test_target_and_version_are_read_from_the_header(
    fixture: Fixture, name: str, target: str, version: int, flags: int
) -> None:
    code = read_code_object(code_of(fixture(name), target), place=PLACE)
    assert (str(code.target), code.version, code.flags) == (target, version, flags)


@pytest.mark.parametrize(("name", "version"), [("v16/vadd.cov2.hipfb", 2), ("v16/vadd.cov3.hipfb", 3)])
def test_old_versions_hold_features_elsewhere(fixture: Fixture, name: str, version: int) -> None:
    code = read_code_object(code_of(fixture(name), "gfx906"), place=PLACE)
    assert (code.version, code.target) == (version, TargetId("gfx906", sramecc=True, xnack=True))


@pytest.mark.parametrize("llvm", ["16", "19", "22", "23"])
def test_machines_and_flags_are_those_that_llvm_writes(fixture: Fixture, llvm: str) -> None:
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
def test_flags_of_a_target_are_those_of_the_compiler(target: str, flags: int) -> None:
    assert encode_flags(parse_target_id(target), place=PLACE) == flags


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gfx1", "x.co: offset 0x0: no machine number is known for 'gfx1'"),
        ("gfx1030:xnack-", "x.co: offset 0x0: gfx1030 doesn't have the feature xnack"),
        ("gfx900:sramecc+", "x.co: offset 0x0: gfx900 doesn't have the feature sramecc"),
    ],
)
def test_flags_of_an_impossible_target_are_refused(target: str, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        encode_flags(parse_target_id(target), place=PLACE)


def test_processor_without_a_number_is_unknown() -> None:
    assert machine_of("gfx1") is None
    assert machine_of_number(0) is None


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ((0x12, b"\x3e\x00"), "expected a code object: an ELF file for AMDGPU and HSA"),
        ((7, b"\x00"), "expected a code object: an ELF file for AMDGPU and HSA"),
        ((8, b"\x05"), "a code object of ABI version 5; expected 0 to 4"),
        (
            (0x20, b"\xff\xff\xff"),
            "the program header table would lie at 0xffffff to 0x10001f7",
        ),
        ((0x40 + 8 * 56 + 8, b"\xff\xff"), "its notes would lie at 0xffff to 0x10273, but the file ends at 0xe70"),
    ],
    ids=["machine", "abi", "abi version", "program headers", "notes"],
)
def test_damaged_code_object_is_refused(fixture: Fixture, edit: tuple[int, bytes], message: str) -> None:
    offset, new = edit
    data = bytearray(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    data[offset : offset + len(new)] = new
    with pytest.raises((DeviceCodeError, ElfError), match=f"^x.co: offset 0x0: .*{re.escape(message)}"):
        read_code_object(memoryview(data), place=PLACE)
