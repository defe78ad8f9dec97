"""Tests of `rocwheel.device.split.wheel_metadata`."""

from __future__ import annotations

import pytest

from rocwheel.device.split.wheel_metadata import DeviceNames


def names(*targets: str, prefix: str = "torch-device") -> DeviceNames:
    return DeviceNames(prefix=prefix, version="2.9.0+rocm7", targets=targets)


@pytest.mark.parametrize(
    ("prefix", "target", "name"),
    [
        ("torch-device", "gfx1100", "torch-device-gfx1100"),
        ("amd_Torch.device", "gfx90a", "amd-torch-device-gfx90a"),
        ("torch-device", "gfx12_0", "torch-device-gfx12-0"),
        ("torch-device", "gfx110x", "torch-device-gfx110x"),
        ("torch-device", "gfx1250-strict", "torch-device-gfx1250-strict"),
    ],
)
def test_name_is_normalized(prefix: str, target: str, name: str) -> None:
    assert names(prefix=prefix).distribution(target) == name


def test_each_target_has_an_extra_and_all_have_one() -> None:
    assert names("gfx906", "gfx90a").requirements() == (
        'torch-device-gfx906 == 2.9.0+rocm7; extra == "device-gfx906"',
        'torch-device-gfx90a == 2.9.0+rocm7; extra == "device-gfx90a"',
        'torch-device-gfx906 == 2.9.0+rocm7; extra == "device-all"',
        'torch-device-gfx90a == 2.9.0+rocm7; extra == "device-all"',
    )
    assert names("gfx906", "gfx90a").extras() == ("device-gfx906", "device-gfx90a", "device-all")


def test_a_target_pulls_the_wheels_of_its_families_the_smallest_first() -> None:
    found = names("gfx906", "gfx1100", "gfx1150", "gfx11", "gfx110x", "gfx12_0")
    assert found.families_of("gfx1100") == ("gfx110x", "gfx11")
    assert found.families_of("gfx1150") == ("gfx11",)
    assert found.families_of("gfx906") == ()
    assert [text for text in found.requirements() if text.endswith('"device-gfx1100"')] == [
        'torch-device-gfx1100 == 2.9.0+rocm7; extra == "device-gfx1100"',
        'torch-device-gfx110x == 2.9.0+rocm7; extra == "device-gfx1100"',
        'torch-device-gfx11 == 2.9.0+rocm7; extra == "device-gfx1100"',
    ]


def test_families_have_no_extra_of_their_own() -> None:
    assert names("gfx11", "gfx12_0").extras() == ("device-all",)
    assert names("gfx11", "gfx12_0").requirements() == (
        'torch-device-gfx11 == 2.9.0+rocm7; extra == "device-all"',
        'torch-device-gfx12-0 == 2.9.0+rocm7; extra == "device-all"',
    )
