"""Tests of the metadata notes of code objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundle_sequence import iter_entry
from rocwheel.binary.code_object import read_code_object
from rocwheel.binary.device_code import read_device_code
from rocwheel.binary.device_error import DeviceCodeError, Place
from rocwheel.binary.kernel_metadata import (
    KernelArgument,
    Metadata,
    count_kernels,
    read_metadata,
    rename_target,
)
from rocwheel.binary.target_id import TargetId, parse_target_id

if TYPE_CHECKING:
    from tests.binary.conftest import Fixture

PLACE = Place("x.co")


def code_of(data: memoryview, target: str) -> memoryview:
    code = read_device_code(data, name="x")
    assert code is not None
    bundle = next(code.iter_bundles(data))
    [entry] = [entry for entry in bundle.plain.device_entries if str(entry.target) == target]
    return memoryview(b"".join(iter_entry(code.view(data), bundle, entry)))


def metadata_of(data: memoryview) -> tuple[Metadata, ...]:
    return read_metadata(data, read_code_object(data, place=PLACE), place=PLACE)


def test_kernels_and_their_arguments_are_read(fixture: Fixture) -> None:
    [metadata] = metadata_of(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    [kernel] = metadata.kernels
    assert (metadata.version, metadata.target) == ((1, 2), "amdgcn-amd-amdhsa--gfx1030")
    assert (kernel.name, kernel.symbol, kernel.wavefront_size, kernel.kernarg_segment_size) == (
        "saxpy",
        "saxpy.kd",
        32,
        28,
    )
    assert kernel.arguments[:2] == (
        KernelArgument(offset=0, size=4, value_kind="by_value"),
        KernelArgument(offset=8, size=8, value_kind="global_buffer", address_space="global"),
    )


def test_every_note_of_relocatable_device_code_is_read(fixture: Fixture) -> None:
    data = code_of(fixture("v22/libtwo.rdc.so"), "gfx1030")
    assert [[kernel.name for kernel in note.kernels] for note in metadata_of(data)] == [["vadd"], ["saxpy"]]
    assert count_kernels(data, read_code_object(data, place=PLACE), place=PLACE) == 2


def test_version_3_has_no_target_and_version_2_no_such_note(fixture: Fixture) -> None:
    assert [note.target for note in metadata_of(code_of(fixture("v16/vadd.cov3.hipfb"), "gfx906"))] == [""]
    assert metadata_of(code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906")) == ()


@pytest.mark.parametrize(
    ("name", "old", "new", "isa"),
    [
        ("v22/saxpy.hipfb", "gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx1031"),
        ("v22/saxpy.hipfb", "gfx90a:xnack+", "gfx90a:xnack-", "amdgcn-amd-amdhsa--gfx90a:xnack-"),
        ("v23/saxpy.hipfb", "gfx1030", "gfx1036", "amdgcn-amd-amdhsa-unknown-gfx1036"),
        ("v22/libtwo.rdc.so", "gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx1031"),
    ],
)
def test_target_is_renamed_in_every_note(fixture: Fixture, name: str, old: str, new: str, isa: str) -> None:
    data = bytearray(code_of(fixture(name), old))
    code = read_code_object(memoryview(data), place=PLACE)
    before = metadata_of(memoryview(data))
    for offset, edit in rename_target(memoryview(data), code, parse_target_id(old), parse_target_id(new), place=PLACE):
        data[offset : offset + len(edit)] = edit
    after = metadata_of(memoryview(data))
    assert {note.target for note in after} == {isa}
    assert [note.kernels for note in after] == [note.kernels for note in before]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gfx1030", "gfx906", "'gfx906' doesn't fit where the metadata note has 'gfx1030'; expected an equal length"),
        ("gfx1100", "gfx1101", "a metadata note for 'amdgcn-amd-amdhsa--gfx1030'; expected one for 'gfx1100'"),
    ],
)
def test_target_that_can_not_be_renamed_is_refused(fixture: Fixture, old: str, new: str, message: str) -> None:
    data = code_of(fixture("v22/saxpy.hipfb"), "gfx1030")
    code = read_code_object(data, place=PLACE)
    with pytest.raises(DeviceCodeError, match=re.escape(f"x.co: offset 0x0: {message}")):
        rename_target(data, code, TargetId(old), TargetId(new), place=PLACE)


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (0x238 + 20, b"\xc1", "a metadata note that is not MessagePack of a code object"),
        (0x238 + 20, b"\x93", "a metadata note that is not MessagePack of a code object"),
        (0x238 + 4, b"\xff\xff", "a note at byte 568 of the code object that runs past its segment"),
    ],
    ids=["no MessagePack", "no map", "size"],
)
def test_damaged_note_is_refused(fixture: Fixture, offset: int, new: bytes, message: str) -> None:
    data = bytearray(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    data[offset : offset + len(new)] = new
    with pytest.raises(DeviceCodeError, match=re.escape(f"x.co: offset 0x0: {message}")):
        metadata_of(memoryview(data))
