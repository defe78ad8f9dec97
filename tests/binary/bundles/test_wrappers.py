"""Tests of `rocwheel.binary.bundles.wrappers`."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import read_device_code
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

    from rocwheel.device.device_facts import DeviceFacts
    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


TWO, GNU = "pe/two.dll", "pe/two-gnu.dll"
"""Two bundles with a wrapper each, by lld and by GNU ld."""


def bytes_of(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def read(data: bytes) -> FatBinary:
    fat = read_fat_binary(memoryview(data), name="a.dll")
    assert fat is not None
    return fat


def facts_of(data: bytes) -> DeviceFacts:
    facts = read_device_facts(memoryview(data), name="a.dll")
    assert facts is not None
    return facts


def changed(name: str, at: int, layout: str, *values: int) -> bytes:
    data = bytearray(bytes_of(name))
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


@pytest.mark.parametrize("name", [TWO, GNU])
def test_wrappers_point_to_bundles(name: str) -> None:
    data = bytes_of(name)
    fat = read(data)
    assert [(one.offset, one.is_kpack) for one in fat.wrappers] == [(0x800, False), (0x818, False)]
    assert [one.pointer.stored_at for one in fat.wrappers] == [0x808, 0x820]
    assert fat.starts == (0, 0x5000)
    assert [bundle.start for bundle in fat.iter_bundles(memoryview(data))] == [0, 0x5000]


@pytest.mark.parametrize(("name", "size"), [(TWO, 37320), (GNU, 40960)])
def test_padding_at_the_end_of_the_section_is_not_device_code(name: str, size: int) -> None:
    code = read_device_code(memoryview(bytes_of(name)), name=name)
    assert code is not None
    assert code.section[1] == size


@pytest.mark.parametrize("name", [TWO, GNU])
def test_the_code_is_the_same_as_in_the_bare_bundles(name: str) -> None:
    alone = read_device_facts(memoryview(bytes_of("edge/two.plain.fatbin")), name="bundles")
    assert alone is not None
    assert [bundle.entries for bundle in facts_of(bytes_of(name)).bundles] == [one.entries for one in alone.bundles]


def test_a_windows_library_without_device_code_is_not_a_fat_binary() -> None:
    assert read_fat_binary(memoryview(bytes_of("pe/api7.dll")), name="a.dll") is None


def test_a_wrapper_of_an_unknown_kind_is_refused() -> None:
    message = (
        "a.dll: offset 0x818: a fat binary wrapper with magic 0x1 and version 1; expected 0x48495046 (HIPF) or "
        "0x4b504948 (HIPK) and version 1"
    )
    with pytest.raises(DeviceCodeError, match=f"^{re.escape(message)}$"):
        read(changed(TWO, 0x818, "<I", 1))


def test_a_wrapper_that_points_outside_the_section_is_reported() -> None:
    data = changed(TWO, 0x820, "<Q", 0x180001000)
    assert facts_of(data).problems == ("a.dll: the wrapper at 0x818 points to address 0x1000, not to a bundle",)
    message = (
        "a wrapper that points to address 0x1000; expected an address in .hip_fat, which has 37320 bytes at 0x4000"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        _ = read(data).starts


def test_a_wrapper_that_points_below_the_image_is_reported_in_words() -> None:
    data = changed(TWO, 0x820, "<Q", 0x1000)
    found = "a.dll: the wrapper at 0x818 points to another section or nowhere, not to a bundle"
    assert facts_of(data).problems == (found,)
    with pytest.raises(
        DeviceCodeError, match="a wrapper that points to another section or nowhere; expected an address in"
    ):
        _ = read(data).starts


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"MZ is how this text begins, which is longer than a DOS header.", id="text"),
        pytest.param(b"MZ", id="two bytes"),
        pytest.param(bytes_of(TWO)[:0x80], id="headers cut off"),
        pytest.param(b"MZ" + bytes(58) + b"\xff\xff\xff\xff", id="header outside"),
    ],
)
def test_a_file_that_merely_starts_like_a_dll_has_no_device_code(data: bytes) -> None:
    assert read_device_code(memoryview(data), name="a.dll") is None


def fat_of(data: memoryview) -> FatBinary:
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
    fat = fat_of(fixture(name))
    found = list(fat.iter_bundles(fixture(name)))
    assert (len(fat.wrappers), len(found)) == (wrappers, bundles)
    assert fat.starts == tuple(bundle.start for bundle in found)


@pytest.mark.parametrize("name", ["v19/saxpy.rdc.o", "v22/saxpy.hipfb", "mach/flags.22"])
def test_files_without_wrappers_are_not_fat_binaries(fixture: Fixture, name: str) -> None:
    assert read_fat_binary(fixture(name), name=name) is None


@pytest.mark.parametrize("option", ["--pack-dyn-relocs=none", "--pack-dyn-relocs=relr"])
def test_pointers_are_resolved_with_every_kind_of_relocation(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path, option: str
) -> None:
    library = tmp_path / "lib.so"
    objects = [str(fixture_path("v19/vadd.plain.o"))]
    run_tool(["ld.lld-16", "-shared", option, "--unresolved-symbols=ignore-all", "-o", str(library), *objects])
    data = memoryview(library.read_bytes())
    fat = fat_of(data)
    assert [bundle.start for bundle in fat.iter_bundles(data)] == [0]
    assert fat.wrappers[0].pointer.target == fat.section.address


def test_relocations_of_other_sections_are_not_applied_to_wrappers(run_tool: RunTool, tmp_path: Path) -> None:
    source, unit = tmp_path / "x.s", tmp_path / "x.o"
    source.write_text(
        '.section .hip_fatbin,"a"\nbundle: .incbin "{}"\n'
        '.section .hipFatBinSegment,"aw"\n .long 0x48495046, 1\n .quad bundle, 0\n'
        ".data\n .quad 0, elsewhere + 64\n".format(FIXTURES / "v22/saxpy.hipfb")
    )
    run_tool(["clang-16", "-c", "-o", str(unit), str(source)])
    fat = fat_of(memoryview(unit.read_bytes()))
    assert [wrapper.pointer.target for wrapper in fat.wrappers] == [0]


def test_wrappers_into_a_section_without_bytes_do_not_point_to_a_bundle(fixture: Fixture) -> None:
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
        f"x: the wrapper at {wrapper.offset:#x} points to address {wrapper.pointer.target:#x}, not to a bundle"
        for wrapper in fat.wrappers
    )
    with pytest.raises(DeviceCodeError, match="a wrapper points here; expected the start of a bundle"):
        device_patch(memoryview(data), name="x", storage=Storage(compress=True))


def test_a_wrapper_for_a_kpack_archive_is_recognized(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    wrappers = fat_of(memoryview(data)).wrappers
    data[wrappers[0].offset : wrappers[0].offset + 4] = b"HIPK"
    fat = fat_of(memoryview(data))
    assert fat.is_kpacked
    assert list(fat.iter_bundles(memoryview(data))) == []


def test_a_wrapper_of_an_unknown_kind_is_refused_in_an_elf_file(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    offset = fat_of(memoryview(data)).wrappers[1].offset
    data[offset : offset + 4] = b"ABCD"
    message = (
        f"libx.so: offset {offset:#x}: a fat binary wrapper with magic 0x44434241 and version 1; expected 0x48495046 "
        "(HIPF) or 0x4b504948 (HIPK) and version 1"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        fat_of(memoryview(data))


def test_a_wrapper_that_does_not_point_to_a_bundle_is_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = fat_of(memoryview(data))
    stored_at = fat.wrappers[0].pointer.stored_at
    assert stored_at is not None
    data[stored_at : stored_at + 8] = (fat.section.address + 64).to_bytes(8, "little")
    message = "libx.so: offset 0x1040: a wrapper points here; expected the start of a bundle"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(fat_of(memoryview(data)).iter_bundles(memoryview(data)))


def test_a_wrapper_that_points_outside_the_section_is_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    wrapper = fat_of(memoryview(data)).wrappers[1]
    assert wrapper.pointer.stored_at is not None
    data[wrapper.pointer.stored_at : wrapper.pointer.stored_at + 8] = (0x77777).to_bytes(8, "little")
    message = (
        f"libx.so: offset {wrapper.offset:#x}: a wrapper that points to address 0x77777; expected an address "
        "in .hip_fatbin"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(fat_of(memoryview(data)).iter_bundles(memoryview(data)))


@pytest.mark.parametrize(("name", "wrappers"), [(".hipFatBinSegment", 0), (".hip_fatbin", None)])
def test_a_section_of_type_null_is_ignored_at_any_size(fixture: Fixture, name: str, wrappers: int | None) -> None:
    data = bytearray(fixture("v19/libtwo.plain.so"))
    sections = read_sections(data, name="libx.so")
    at = int.from_bytes(data[40:48], "little") + 64 * [section.name for section in sections].index(name)
    data[at + 4 : at + 8] = bytes(4)  # sh_type
    data[at + 39] = 8  # sh_size, now beyond 2 ** 59
    fat = read_fat_binary(memoryview(data), name="libx.so")
    assert (len(fat.wrappers) if fat else None) == wrappers
