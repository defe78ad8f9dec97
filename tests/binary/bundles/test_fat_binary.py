"""Tests of fat binaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import DeviceCodeError
from rocwheel.binary.elf.header import read_sections
from rocwheel.device.device_facts import read_device_facts
from rocwheel.device.edit_bundles import device_patch
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


def read(data: memoryview) -> FatBinary:
    fat = read_fat_binary(data, name="libx.so")
    assert fat is not None
    return fat


@pytest.mark.parametrize(
    ("name", "wrappers", "bundles"),
    [
        ("v18/libtwo.ccob.so", 2, 2),
        ("v18/libtwo.rdcccob.so", 2, 1),
        ("v19/libtwo.plain.so", 2, 2),
        ("v19/libtwo.rdc.so", 2, 1),
        ("v19/vadd.plain.o", 1, 1),
        ("v22/libtwo.ccob.so", 2, 2),
        ("v22/libtwo.rdc.so", 2, 1),
        ("v23/libtwo.plain.so", 2, 2),
        ("v23/libtwo.rdc.so", 1, 1),
        ("hip/realcompress", 1, 1),
    ],
)
def test_wrappers_and_bundles_are_found(fixture: Fixture, name: str, wrappers: int, bundles: int) -> None:
    fat = read(fixture(name))
    found = list(fat.iter_bundles(fixture(name)))
    assert (len(fat.wrappers), len(found)) == (wrappers, bundles)
    assert fat.starts == tuple(bundle.start for bundle in found)


@pytest.mark.parametrize("name", ["v19/saxpy.rdc.o", "v22/saxpy.hipfb", "mach/flags.22"])
def test_other_file_is_not_a_fat_binary(fixture: Fixture, name: str) -> None:
    assert read_fat_binary(fixture(name), name=name) is None


@pytest.mark.parametrize("option", ["--pack-dyn-relocs=none", "--pack-dyn-relocs=relr"])
def test_pointers_are_resolved_however_they_are_relocated(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path, option: str
) -> None:
    library = tmp_path / "lib.so"
    objects = [str(fixture_path("v19/vadd.plain.o"))]
    run_tool(["ld.lld-16", "-shared", option, "--unresolved-symbols=ignore-all", "-o", str(library), *objects])
    data = memoryview(library.read_bytes())
    fat = read(data)
    assert [bundle.start for bundle in fat.iter_bundles(data)] == [0]
    assert fat.wrappers[0].pointer.target == fat.section.address


def test_relocations_of_another_section_of_an_object_file_are_not_the_wrappers(
    run_tool: RunTool, tmp_path: Path
) -> None:
    source, unit = tmp_path / "x.s", tmp_path / "x.o"
    source.write_text(
        '.section .hip_fatbin,"a"\nbundle: .incbin "{}"\n'
        '.section .hipFatBinSegment,"aw"\n .long 0x48495046, 1\n .quad bundle, 0\n'
        ".data\n .quad 0, elsewhere + 64\n".format(FIXTURES / "v22/saxpy.hipfb")
    )
    run_tool(["clang-16", "-c", "-o", str(unit), str(source)])
    fat = read(memoryview(unit.read_bytes()))
    assert [wrapper.pointer.target for wrapper in fat.wrappers] == [0]


def test_wrappers_of_a_section_without_bytes_point_at_no_bundle(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = read_fat_binary(memoryview(data), name="x")
    assert fat is not None
    section = next(one for one in read_sections(bytes(data), name="x") if one.name == fat.section.name)
    header = data.rindex(section.pack())
    data[header + 4 : header + 8] = (8).to_bytes(4, "little")
    facts = read_device_facts(memoryview(data), name="x")
    assert facts is not None
    assert facts.container == "fat binary"
    assert facts.problems == tuple(
        f"x: wrapper at {wrapper.offset:#x} does not point at a bundle (but at address {wrapper.pointer.target:#x})"
        for wrapper in fat.wrappers
    )
    with pytest.raises(DeviceCodeError, match="a wrapper points here; expected the start of a bundle"):
        device_patch(memoryview(data), name="x", storage=Storage(compress=True))


def test_wrapper_of_a_kpack_archive_is_reported(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    wrappers = read(memoryview(data)).wrappers
    data[wrappers[0].offset : wrappers[0].offset + 4] = b"HIPK"
    fat = read(memoryview(data))
    assert fat.is_kpacked
    assert list(fat.iter_bundles(memoryview(data))) == []


def test_wrapper_of_an_unknown_kind_is_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    offset = read(memoryview(data)).wrappers[1].offset
    data[offset : offset + 4] = b"ABCD"
    message = (
        f"libx.so: offset {offset:#x}: a fat binary wrapper of magic 0x44434241 and version 1; expected 0x48495046 "
        "(HIPF) or 0x4b504948 (HIPK) and version 1"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        read(memoryview(data))


def test_wrapper_that_points_to_no_bundle_is_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = read(memoryview(data))
    stored_at = fat.wrappers[0].pointer.stored_at
    assert stored_at is not None
    data[stored_at : stored_at + 8] = (fat.section.address + 64).to_bytes(8, "little")
    message = "libx.so: offset 0x1040: a wrapper points here; expected the start of a bundle"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(read(memoryview(data)).iter_bundles(memoryview(data)))


def test_wrapper_that_points_out_of_the_section_is_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    wrapper = read(memoryview(data)).wrappers[1]
    assert wrapper.pointer.stored_at is not None
    data[wrapper.pointer.stored_at : wrapper.pointer.stored_at + 8] = (0x77777).to_bytes(8, "little")
    message = (
        f"libx.so: offset {wrapper.offset:#x}: a wrapper that points to address 0x77777; expected one in .hip_fatbin"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(read(memoryview(data)).iter_bundles(memoryview(data)))


@pytest.mark.parametrize(("name", "wrappers"), [(".hipFatBinSegment", 0), (".hip_fatbin", None)])
def test_a_section_of_type_null_is_none_whatever_its_size(fixture: Fixture, name: str, wrappers: int | None) -> None:
    data = bytearray(fixture("v19/libtwo.plain.so"))
    sections = read_sections(data, name="libx.so")
    at = int.from_bytes(data[40:48], "little") + 64 * [section.name for section in sections].index(name)
    data[at + 4 : at + 8] = bytes(4)  # sh_type
    data[at + 39] = 8  # sh_size, now beyond 2 ** 59
    fat = read_fat_binary(memoryview(data), name="libx.so")
    assert (len(fat.wrappers) if fat else None) == wrappers
