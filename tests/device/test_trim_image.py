"""Tests of `rocwheel.device.trim`."""

from __future__ import annotations

import struct
from pathlib import Path

import pefile
import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import NotTrimmableError, parse_target_id
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.layout import find_layout_faults
from rocwheel.core.patch import patched_view
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.edit_bundles import Prune, device_patch
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.trim import require_trimmable

FIXTURES = Path(__file__).parents[1] / "fixtures/pe"
NAMES = pytest.mark.parametrize("name", ["two.dll", "two-gnu.dll"])
KEPT = Prune(keep=(parse_target_id("gfx906"),))


@NAMES
def test_the_file_gets_smaller_and_memory_stays_as_it_was(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    report = rewrite_device_code(FIXTURES / name, output, None, Storage(compress=True), trim=True)
    old, new = pefile.PE(FIXTURES / name), pefile.PE(output)
    assert report.trimmed == (FIXTURES / name).stat().st_size - output.stat().st_size > 20000
    data = output.read_bytes()
    assert find_layout_faults(data, read_pe(data, name=name), name=name) == ()
    assert old.OPTIONAL_HEADER.SizeOfImage == new.OPTIONAL_HEADER.SizeOfImage
    for before, after in zip(old.sections, new.sections, strict=True):
        assert (before.VirtualAddress, before.Misc_VirtualSize) == (after.VirtualAddress, after.Misc_VirtualSize)
        if before.Name not in {b".hip_fat", b".hipFatB"}:
            assert before.get_data() == after.get_data()


@NAMES
def test_wrappers_follow_their_bundles(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    rewrite_device_code(FIXTURES / name, output, KEPT, Storage(), trim=True)
    facts = list_device_code(output)
    start = facts.bundles[0].offset
    assert [bundle.offset - start for bundle in facts.bundles] == [0, 0x2000]
    assert (facts.problems, {entry.target for one in facts.bundles for entry in one.entries}) == ((), {"gfx906"})


@NAMES
def test_patches_and_whole_files_come_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    rewrite_device_code(FIXTURES / name, output, KEPT, Storage(), trim=True)
    data = memoryview((FIXTURES / name).read_bytes())
    patch = device_patch(data, name=name, edit=KEPT, storage=Storage(), trim=True)
    assert patch is not None
    assert bytes(patched_view(data, patch)) == output.read_bytes()


def test_a_checksum_is_right_again(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(FIXTURES / "two-gnu.dll", output, KEPT, Storage(), trim=True)
    assert pefile.PE(output).verify_checksum()


def pointing_inside() -> bytes:
    """Return a library with a pointer into its second bundle beside the wrappers'."""
    data = bytearray((FIXTURES / "two.dll").read_bytes())
    struct.pack_into("<Q", data, 0x9C10, 0x180009100)
    return bytes(data)


def test_a_pointer_into_a_bundle_that_would_move_is_refused() -> None:
    data = memoryview(pointing_inside())
    patch = device_patch(data, name="a.dll", edit=KEPT, storage=Storage(), trim=True)
    assert patch is not None
    assert patch.size == len(data), "it is edited where it is"


def test_a_file_with_an_archive_behind_it_is_refused_before_any_work() -> None:
    data = memoryview((FIXTURES / "two.dll").read_bytes() + b"PK\3\4")
    with pytest.raises(NotTrimmableError, match=r"4 bytes behind what its headers tell of, at 0xa000"):
        require_trimmable(data, name="a.dll")
