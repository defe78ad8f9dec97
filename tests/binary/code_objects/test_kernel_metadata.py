"""Tests of the metadata notes of code objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.sequence import iter_entry
from rocwheel.binary.code_objects.code_object import read_code_object
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.code_objects.kernel_metadata import (
    KernelArgument,
    Metadata,
    count_kernels,
    decode_note,
    read_metadata,
)
from rocwheel.binary.elf.bytes import ElfError
from rocwheel.core.reading import join_data

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool

PLACE = Place("x.co")


def code_of(data: memoryview, target: str) -> memoryview:
    code = read_device_code(data, name="x")
    assert code is not None
    bundle = next(code.iter_bundles(data))
    [entry] = [entry for entry in bundle.plain.device_entries if str(entry.target) == target]
    return memoryview(join_data(iter_entry(code.view(data), bundle, entry)))


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
    ("offset", "new", "message"),
    [
        (0x238 + 20, b"\xc1", "a metadata note that is not MessagePack of a code object"),
        (0x238 + 20, b"\x93", "a metadata note that is not MessagePack of a code object"),
        (0x238 + 4, b"\xff\xff", "a note at byte 568 that runs past its segment"),
    ],
    ids=["no MessagePack", "no map", "size"],
)
def test_damaged_note_is_refused(fixture: Fixture, offset: int, new: bytes, message: str) -> None:
    data = bytearray(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    data[offset : offset + len(new)] = new
    with pytest.raises((DeviceCodeError, ElfError), match=re.escape(f"x.co: offset 0x0: {message}")):
        metadata_of(memoryview(data))


@pytest.mark.parametrize("shape", [Metadata, dict[str, msgspec.Raw]], ids=["all", "top level"])
def test_note_that_is_nested_without_end_is_refused(shape: type) -> None:
    note = memoryview(b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0")
    with pytest.raises(DeviceCodeError, match=r"^x.co: offset 0x0: a metadata note that is not MessagePack of"):
        decode_note(msgspec.msgpack.Decoder(shape), note, PLACE)


def test_kernels_of_version_2_are_counted_by_their_symbols(fixture: Fixture, run_tool: RunTool, tmp_path: Path) -> None:
    data = code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906")
    assert count_kernels(data, read_code_object(data, place=PLACE), place=PLACE) == 1
    (tmp_path / "x.co").write_bytes(data)
    assert run_tool(["llvm-readelf-16", "--dyn-syms", str(tmp_path / "x.co")]).count(" AMDGPU_HSA_KERNEL ") == 1


def test_kernels_of_version_2_that_is_not_linked_are_unknown(fixture: Fixture) -> None:
    data = bytearray(code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906"))
    program_headers = range(64, 64 + 8 * 56, 56)
    [dynamic] = [offset for offset in program_headers if data[offset : offset + 4] == b"\2\0\0\0"]
    data[dynamic : dynamic + 4] = bytes(4)
    view = memoryview(data)
    assert count_kernels(view, read_code_object(view, place=PLACE), place=PLACE) is None
