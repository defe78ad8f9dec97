"""Object files of Windows with device code, by themselves and in static libraries."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.device_code import device_targets, read_offload_images
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, parse_target_id
from rocwheel.binary.pe.header import PeBytes, PeError
from rocwheel.binary.pe.object_file import read_object_file
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.split.host_file import has_code_to_split
from tests.support.damage import damaged, unless_refused

if TYPE_CHECKING:
    from tests.support.tools import RunTool

PATH = Path(__file__).parents[2] / "fixtures/pe/two.obj"
OBJECT = PATH.read_bytes()
TARGETS = ["gfx1030", "gfx906", "gfx90a:xnack+"]


def read(data: bytes) -> FatBinary:
    fat = read_fat_binary(memoryview(data), name="a.obj")
    assert fat is not None
    return fat


def changed(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(OBJECT)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


def targets_in(path: Path) -> set[str]:
    return {entry.target for bundle in list_device_code(path).bundles for entry in bundle.entries}


def test_long_section_names_are_read_in_full() -> None:
    file = read_object_file(PeBytes(memoryview(OBJECT), "a.obj"))
    assert [section.name for section in file.sections][3:] == [".hip_fatbin", ".hipFatBinSegment"]


def test_wrappers_are_resolved_to_bundles_through_relocations() -> None:
    fat = read(OBJECT)
    assert [(wrapper.is_kpack, fat.start_of(wrapper)) for wrapper in fat.wrappers] == [(False, 0), (False, 0x5000)]
    assert [bundle.start for bundle in fat.iter_bundles(memoryview(OBJECT))] == [0, 0x5000]
    assert list(map(str, device_targets(memoryview(OBJECT), name="a.obj"))) == TARGETS


def relocations_at() -> int:
    file = read_object_file(PeBytes(memoryview(OBJECT), "a.obj"))
    return file.sections[4].relocations_at


def test_a_wrapper_that_points_to_another_section_is_reported() -> None:
    facts_of = changed(relocations_at() + 4, "<I", 0)
    problems = read(facts_of).find_problems([read(OBJECT).section.offset, read(OBJECT).section.offset + 0x5000])
    assert len(problems) == 1
    assert problems[0].endswith("points to another section or nowhere, not to a bundle")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            changed(relocations_at() + 4, "<I", 1 << 20), "a relocation to symbol 1048576, but only ", id="symbol"
        ),
        pytest.param(changed(8, "<I", 1 << 30), "the symbol table would span 0x40000000 to ", id="symbols"),
        pytest.param(OBJECT[:0x1000], "the symbol table would span ", id="cut off"),
    ],
)
def test_damage_is_reported_with_the_file_name(data: bytes, message: str) -> None:
    with pytest.raises(PeError, match=f"^a\\.obj: {re.escape(message)}"):
        read(data)


def test_an_object_file_is_pruned_without_moving_its_code(tmp_path: Path) -> None:
    output = tmp_path / "a.obj"
    rewrite_device_code(PATH, output, Prune(keep=(parse_target_id("gfx906"),)), Storage())
    assert (targets_in(output), output.stat().st_size) == ({"gfx906"}, len(OBJECT))
    fat = read(output.read_bytes())
    assert fat.starts == (0, 0x5000)


@pytest.mark.parametrize("tool", ["llvm-lib-16 /llvmlibthin:no", "x86_64-w64-mingw32-ar rc"])
def test_both_kinds_of_static_libraries_are_read_and_pruned(tool: str, run_tool: RunTool, tmp_path: Path) -> None:
    library, output = tmp_path / "a.lib", tmp_path / "b.lib"
    long_name = tmp_path / "an_object_file_with_a_long_name.obj"
    long_name.write_bytes(OBJECT)
    name = tool.split(maxsplit=1)[0]
    run_tool([name, f"/out:{library}", str(long_name)] if "lib" in name else [name, "rc", str(library), str(long_name)])
    assert targets_in(library) == set(TARGETS)
    rewrite_device_code(library, output, Prune(keep=(parse_target_id("gfx906"),)), Storage())
    assert targets_in(output) == {"gfx906"}
    assert output.stat().st_size == library.stat().st_size


def test_unlinked_code_is_not_split_or_trimmed(tmp_path: Path) -> None:
    assert not has_code_to_split(memoryview(OBJECT), name="a.obj")
    with pytest.raises(NotTrimmableError, match="an object file; expected a linked file"):
        rewrite_device_code(PATH, tmp_path / "a.obj", None, Storage(compress=True), trim=True)


def test_images_from_the_new_driver_are_found_in_object_files(run_tool: RunTool, tmp_path: Path) -> None:
    source, unit = tmp_path / "a.s", tmp_path / "a.obj"
    section = "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906"
    source.write_text(f'.section "{section}","dr"\n.ascii "code"\n')
    run_tool(["clang-16", "--target=x86_64-pc-windows-msvc", "-c", "-o", str(unit), str(source)])
    [image] = read_offload_images(memoryview(unit.read_bytes()), name="a.obj")
    assert (str(image.target), image.size) == ("gfx906", 4)


@given(damaged([OBJECT]))
def test_a_damaged_file_is_read_or_refused(data: bytes) -> None:
    def count() -> int:
        return len(device_targets(memoryview(data), name="a.obj"))

    unless_refused(count, "a.obj")
