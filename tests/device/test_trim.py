"""Tests of `rocwheel.device.trim`."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import pefile
import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import DeviceCodeError, NotTrimmableError, parse_target_id
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.layout import find_layout_faults
from rocwheel.core.errors import InputError
from rocwheel.core.patch import patched_view
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.edit_bundles import Prune, device_patch
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.trim import plan_trim, require_trimmable
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


TRIMMABLE = (
    "expected a library, an object file, or a static library with bundles to trim, or a folder or wheel of such files"
)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hip/realcompress", "x: offset 0x0: a program or an object file; expected a shared library."),
        (
            "v22/saxpy.hipfb",
            f"x: a bundle file; {TRIMMABLE}",
        ),
        (
            "elf/libplain.so",
            f"x: not a fat binary; {TRIMMABLE}",
        ),
    ],
)
def test_a_file_that_is_not_a_fat_shared_library_is_refused(fixture: Fixture, name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        plan_trim(fixture(name), name="x")


def test_a_thin_archive_is_refused() -> None:
    message = f"x.a: a thin archive; {TRIMMABLE}"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        require_trimmable(memoryview(b"!<thin>\n"), name="x.a")


@pytest.mark.parametrize("linker", ["ld.bfd", "ld.lld-16"])
def test_a_static_position_independent_program_is_refused(run_tool: RunTool, tmp_path: Path, linker: str) -> None:
    program = tmp_path / "program"
    options = ["-pie", "--no-dynamic-linker", "--unresolved-symbols=ignore-all", "-o", str(program)]
    run_tool([linker, *options, str(FIXTURES / "v19/vadd.plain.o")])
    assert "INTERP" not in run_tool(["readelf", "-lW", str(program)])
    with pytest.raises(NotTrimmableError, match="a program or an object file; expected a shared library"):
        plan_trim(memoryview(program.read_bytes()), name="x")


def test_program_headers_inside_the_device_code_are_refused(fixture: Fixture) -> None:
    data = bytearray(fixture("v22/libtwo.plain.so"))
    fat = read_fat_binary(memoryview(data), name="x")
    assert fat is not None
    table = bytes(data[64 : 64 + 10 * 56])
    data[fat.section.offset + 600 : fat.section.offset + 600 + len(table)] = table
    data[32:40] = (fat.section.offset + 600).to_bytes(8, "little")
    message = "x: offset 0x1000: other data in .hip_fatbin; expected only device code. Leave the file unchanged."
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        plan_trim(memoryview(data), name="x")


PE_FIXTURES = FIXTURES / "pe"
NAMES = pytest.mark.parametrize("name", ["two.dll", "two-gnu.dll"])
KEPT = Prune(keep=(parse_target_id("gfx906"),))


@NAMES
def test_trimming_shrinks_the_file_and_preserves_the_memory_layout(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    report = rewrite_device_code(PE_FIXTURES / name, output, None, Storage(compress=True), trim=True)
    old, new = pefile.PE(PE_FIXTURES / name), pefile.PE(output)
    assert report.trimmed == (PE_FIXTURES / name).stat().st_size - output.stat().st_size > 20000
    data = output.read_bytes()
    assert find_layout_faults(data, read_pe(data, name=name), name=name) == ()
    assert old.OPTIONAL_HEADER.SizeOfImage == new.OPTIONAL_HEADER.SizeOfImage
    for before, after in zip(old.sections, new.sections, strict=True):
        assert (before.VirtualAddress, before.Misc_VirtualSize) == (after.VirtualAddress, after.Misc_VirtualSize)
        if before.Name not in {b".hip_fat", b".hipFatB"}:
            assert before.get_data() == after.get_data()


@NAMES
def test_wrappers_point_to_the_moved_bundles(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    rewrite_device_code(PE_FIXTURES / name, output, KEPT, Storage(), trim=True)
    facts = list_device_code(output)
    start = facts.bundles[0].offset
    assert [bundle.offset - start for bundle in facts.bundles] == [0, 0x2000]
    assert (facts.problems, {entry.target for one in facts.bundles for entry in one.entries}) == ((), {"gfx906"})


@NAMES
def test_patching_and_rewriting_produce_the_same_bytes(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    rewrite_device_code(PE_FIXTURES / name, output, KEPT, Storage(), trim=True)
    data = memoryview((PE_FIXTURES / name).read_bytes())
    patch = device_patch(data, name=name, edit=KEPT, storage=Storage(), trim=True)
    assert patch is not None
    assert bytes(patched_view(data, patch)) == output.read_bytes()


def test_the_checksum_is_updated(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(PE_FIXTURES / "two-gnu.dll", output, KEPT, Storage(), trim=True)
    assert pefile.PE(output).verify_checksum()


def pointing_inside() -> bytes:
    """Return a library with a pointer into its second bundle beside the wrappers'."""
    data = bytearray((PE_FIXTURES / "two.dll").read_bytes())
    struct.pack_into("<Q", data, 0x9C10, 0x180009100)
    return bytes(data)


def test_a_file_with_a_pointer_into_a_bundle_is_edited_in_place() -> None:
    data = memoryview(pointing_inside())
    patch = device_patch(data, name="a.dll", edit=KEPT, storage=Storage(), trim=True)
    assert patch is not None
    assert patch.size == len(data), "it is edited where it is"


def test_a_file_with_an_appended_archive_is_refused_before_any_work() -> None:
    data = memoryview((PE_FIXTURES / "two.dll").read_bytes() + b"PK\3\4")
    with pytest.raises(NotTrimmableError, match=r"4 bytes at 0xa000, after the data that its headers describe"):
        require_trimmable(data, name="a.dll")
