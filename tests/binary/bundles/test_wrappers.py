"""Tests of `rocwheel.binary.bundles.wrappers`."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import DeviceCodeError
from rocwheel.device.device_facts import read_device_facts

if TYPE_CHECKING:
    from rocwheel.device.device_facts import DeviceFacts


FIXTURES = Path(__file__).parents[2] / "fixtures"
TWO, GNU = "pe/two.dll", "pe/two-gnu.dll"
"""Two bundles with a wrapper each, by lld and by GNU ld."""
WRAPPERS = {TWO: 0x800, GNU: 0x800}


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
def test_wrappers_lead_to_bundles(name: str) -> None:
    data = bytes_of(name)
    fat = read(data)
    assert [(one.offset, one.is_kpack) for one in fat.wrappers] == [(0x800, False), (0x818, False)]
    assert [one.pointer.stored_at for one in fat.wrappers] == [0x808, 0x820]
    assert fat.starts == (0, 0x5000)
    assert [bundle.start for bundle in fat.iter_bundles(memoryview(data))] == [0, 0x5000]


@pytest.mark.parametrize(("name", "size"), [(TWO, 37320), (GNU, 40960)])
def test_bytes_that_only_fill_up_the_file_are_not_device_code(name: str, size: int) -> None:
    code = read_device_code(memoryview(bytes_of(name)), name=name)
    assert code is not None
    assert code.section[1] == size


@pytest.mark.parametrize("name", [TWO, GNU])
def test_the_code_is_that_of_the_bundles_by_themselves(name: str) -> None:
    alone = read_device_facts(memoryview(bytes_of("edge/two.plain.fatbin")), name="bundles")
    assert alone is not None
    assert [bundle.entries for bundle in facts_of(bytes_of(name)).bundles] == [one.entries for one in alone.bundles]


def test_a_library_of_windows_without_device_code_has_none() -> None:
    assert read_fat_binary(memoryview(bytes_of("pe/api7.dll")), name="a.dll") is None


def test_a_wrapper_of_an_unknown_kind_is_refused() -> None:
    message = (
        "a.dll: offset 0x818: a fat binary wrapper of magic 0x1 and version 1; expected 0x48495046 (HIPF) or "
        "0x4b504948 (HIPK) and version 1"
    )
    with pytest.raises(DeviceCodeError, match=f"^{re.escape(message)}$"):
        read(changed(TWO, 0x818, "<I", 1))


def test_a_wrapper_that_points_elsewhere_is_told_by_its_address() -> None:
    data = changed(TWO, 0x820, "<Q", 0x180001000)
    assert facts_of(data).problems == ("a.dll: wrapper at 0x818 does not point at a bundle (but at address 0x1000)",)
    message = "a wrapper that points to address 0x1000; expected one in .hip_fat, 37320 bytes from 0x4000"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        _ = read(data).starts


def test_a_wrapper_that_points_below_the_image_is_told_in_words() -> None:
    data = changed(TWO, 0x820, "<Q", 0x1000)
    found = "a.dll: wrapper at 0x818 does not point at a bundle (but at another section or nowhere)"
    assert facts_of(data).problems == (found,)
    with pytest.raises(DeviceCodeError, match="a wrapper that points to another section or nowhere; expected one in"):
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
def test_what_only_begins_like_a_library_of_windows_has_no_device_code(data: bytes) -> None:
    assert read_device_code(memoryview(data), name="a.dll") is None
