"""Tests of `rocwheel.binary.kernel_metadata`."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.sequence import iter_entry
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, parse_target_id, read_code_object
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kernel_metadata import (
    CodeMetadata,
    KernelArgument,
    count_kernels,
    decode_note,
    read_metadata,
    rename_target,
)
from rocwheel.core.reading import join_data, load
from rocwheel.device.edit_bundles import bundle_parts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


PLACE = CodePlace("x.co")


def code_of(data: memoryview, target: str) -> memoryview:
    code = read_device_code(data, name="x")
    assert code is not None
    bundle = next(code.iter_bundles(data))
    [entry] = [entry for entry in bundle.plain.device_entries if str(entry.target) == target]
    return memoryview(join_data(iter_entry(code.view(data), bundle, entry)))


def metadata_of(data: memoryview) -> tuple[CodeMetadata, ...]:
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


def test_version_3_metadata_has_no_target_and_version_2_has_no_such_note(fixture: Fixture) -> None:
    assert [note.target for note in metadata_of(code_of(fixture("v16/vadd.cov3.hipfb"), "gfx906"))] == [""]
    assert metadata_of(code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906")) == ()


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (0x238 + 20, b"\xc1", "a metadata note that isn't valid MessagePack for a code object"),
        (0x238 + 20, b"\x93", "a metadata note that isn't valid MessagePack for a code object"),
        (0x238 + 4, b"\xff\xff", "a note at byte 568 that extends past its segment"),
    ],
    ids=["no MessagePack", "no map", "size"],
)
def test_a_damaged_note_is_refused(fixture: Fixture, offset: int, new: bytes, message: str) -> None:
    data = bytearray(code_of(fixture("v22/saxpy.hipfb"), "gfx1030"))
    data[offset : offset + len(new)] = new
    with pytest.raises((DeviceCodeError, ElfError), match=re.escape(f"x.co: offset 0x0: {message}")):
        metadata_of(memoryview(data))


@pytest.mark.parametrize("shape", [CodeMetadata, dict[str, msgspec.Raw]], ids=["all", "top level"])
def test_a_deeply_nested_note_is_refused(shape: type) -> None:
    note = memoryview(b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0")
    with pytest.raises(DeviceCodeError, match=r"^x.co: offset 0x0: a metadata note that isn't valid MessagePack for"):
        decode_note(msgspec.msgpack.Decoder(shape), note, PLACE)


def test_kernels_in_version_2_code_are_counted_by_symbols(fixture: Fixture, run_tool: RunTool, tmp_path: Path) -> None:
    data = code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906")
    assert count_kernels(data, read_code_object(data, place=PLACE), place=PLACE) == 1
    (tmp_path / "x.co").write_bytes(data)
    assert run_tool(["llvm-readelf-16", "--dyn-syms", str(tmp_path / "x.co")]).count(" AMDGPU_HSA_KERNEL ") == 1


def test_the_number_of_kernels_in_unlinked_version_2_code_is_unknown(fixture: Fixture) -> None:
    data = bytearray(code_of(fixture("v16/vadd.cov2.hipfb"), "gfx906"))
    program_headers = range(64, 64 + 8 * 56, 56)
    [dynamic] = [offset for offset in program_headers if data[offset : offset + 4] == b"\2\0\0\0"]
    data[dynamic : dynamic + 4] = bytes(4)
    view = memoryview(data)
    assert count_kernels(view, read_code_object(view, place=PLACE), place=PLACE) is None


def code_of_of_target_note(data: memoryview, target: str) -> memoryview:
    code = read_device_code(data, name="x")
    assert code is not None
    parts = bundle_parts(code.view(data), next(code.iter_bundles(data)))
    [part] = [part for part in parts if part.spelling.endswith(f"-{target}")]
    return load(part.payload[0])


def metadata_of_of_target_note(data: bytes) -> tuple[CodeMetadata, ...]:
    view = memoryview(data)
    return read_metadata(view, read_code_object(view, place=PLACE), place=PLACE)


def rename(data: memoryview, old: str, new: str) -> bytes:
    edited = bytearray(data)
    code = read_code_object(data, place=PLACE)
    for offset, edit in rename_target(data, code, parse_target_id(old), parse_target_id(new), place=PLACE):
        edited[offset : offset + len(edit)] = edit
    assert len(edited) == len(data)
    return bytes(edited)


def with_note(data: memoryview, isa: str) -> memoryview:
    """Return a code object whose only note names ``isa``, at its end."""
    description = msgspec.msgpack.encode({"amdhsa.kernels": [], "amdhsa.target": isa, "amdhsa.version": [1, 2]})
    note = struct.pack("<III8s", 7, len(description), 32, b"AMDGPU") + description
    edited = bytearray(data.tobytes().ljust(-(-len(data) // 8) * 8, b"\0") + note)
    [offset], [number] = struct.unpack_from("<Q", edited, 32), struct.unpack_from("<H", edited, 56)
    for header in range(offset, offset + 56 * number, 56):
        if struct.unpack_from("<I", edited, header)[0] == 4:  # PT_NOTE
            struct.pack_into("<Q", edited, header + 8, len(edited) - len(note))
            struct.pack_into("<Q", edited, header + 32, len(note))
    return memoryview(bytes(edited))


@pytest.mark.parametrize(
    ("old", "new", "isa", "renamed"),
    [
        ("gfx1030", "gfx1031", "amdgpu10.30-amd-amdhsa-unknown-", "amdgpu10.31-amd-amdhsa-unknown-gfx1031"),
        ("gfx1030", "gfx1035", "amdgpu10.3-amd-amdhsa-unknown-", "amdgpu10.3-amd-amdhsa-unknown-gfx1035"),
        ("gfx90a:xnack-", "gfx90c", "amdgpu9.0a-amd-amdhsa-unknown-", "amdgpu9.0c-amd-amdhsa-unknown-gfx90c"),
        ("gfx906", "gfx900", "amdgpu-amd-amdhsa--", "amdgpu-amd-amdhsa--gfx900"),
    ],
)
def test_the_processor_inside_the_llvm_24_architecture_name_is_also_renamed(
    fixture: Fixture, old: str, new: str, isa: str, renamed: str
) -> None:
    data = with_note(code_of_of_target_note(fixture("v22/saxpy.hipfb"), old), f"{isa}{old}")
    assert [note.target for note in metadata_of_of_target_note(rename(data, old, new))] == [renamed]


@pytest.mark.parametrize(
    ("name", "old", "new", "isa"),
    [
        ("v22/saxpy.hipfb", "gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx1031"),
        ("v22/saxpy.hipfb", "gfx1030", "gfx906", "amdgcn-amd-amdhsa--gfx906"),
        ("v22/saxpy.hipfb", "gfx90a:xnack+", "gfx90a:xnack-", "amdgcn-amd-amdhsa--gfx90a:xnack-"),
        ("v22/saxpy.hipfb", "gfx90a:xnack-", "gfx90c", "amdgcn-amd-amdhsa--gfx90c"),
        ("v23/saxpy.hipfb", "gfx90a:xnack-", "gfx90c", "amdgcn-amd-amdhsa-unknown-gfx90c"),
        ("v23/saxpy.hipfb", "gfx1030", "gfx1036", "amdgcn-amd-amdhsa-unknown-gfx1036"),
        ("v22/libtwo.rdc.so", "gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx1031"),
    ],
)
def test_the_target_is_renamed_in_every_note_and_nothing_else_changes(
    fixture: Fixture, name: str, old: str, new: str, isa: str
) -> None:
    data = code_of_of_target_note(fixture(name), old)
    before, after = metadata_of_of_target_note(bytes(data)), metadata_of_of_target_note(rename(data, old, new))
    assert {note.target for note in after} == {isa}
    assert [(note.kernels, note.version) for note in after] == [(note.kernels, note.version) for note in before]


@pytest.mark.parametrize("new", ["gfx90a:xnack-", "gfx90c"])
def test_llvm_can_read_the_renamed_note(fixture: Fixture, run_tool: RunTool, tmp_path: Path, new: str) -> None:
    path = tmp_path / "x.co"
    path.write_bytes(rename(code_of_of_target_note(fixture("v22/saxpy.hipfb"), "gfx90a:xnack+"), "gfx90a:xnack+", new))
    report = run_tool(["llvm-readelf-22", "-n", str(path)])
    assert re.search(rf"amdhsa.target: +'?amdgcn-amd-amdhsa--{re.escape(new)}'?\n", report)
    assert re.search(r"\.name: +saxpy\n", report)


def test_a_note_without_a_target_does_not_change(fixture: Fixture) -> None:
    data = code_of_of_target_note(fixture("v16/vadd.cov3.hipfb"), "gfx906")
    assert rename(data, "gfx906", "gfx900") == data


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gfx906", "gfx1030", "a metadata note without enough room to replace 'gfx906' with 'gfx1030'"),
        ("gfx906", "gfx906:xnack-", "a metadata note without enough room to replace 'gfx906' with 'gfx906:xnack-'"),
    ],
)
def test_a_longer_target_name_is_refused(fixture: Fixture, old: str, new: str, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(f"x.co: offset 0x0: {message}")):
        rename(code_of_of_target_note(fixture("v22/saxpy.hipfb"), old), old, new)


def test_a_note_for_another_target_is_refused(fixture: Fixture) -> None:
    message = "x.co: offset 0x0: a metadata note for 'amdgcn-amd-amdhsa--gfx1030'; expected a note for 'gfx1100'"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        rename(code_of_of_target_note(fixture("v22/saxpy.hipfb"), "gfx1030"), "gfx1100", "gfx1101")
