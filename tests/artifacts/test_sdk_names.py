"""Tests of `rocwheel.artifacts.sdk_names`."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.sdk_names import (
    device_extra,
    device_target,
    family_module,
    is_family,
    is_family_variant,
    is_sdk_package,
)


def test_the_selector_is_not_one_of_the_sdk_packages() -> None:
    assert [name for name in ("rocm", "rocm-sdk-core", "jax") if is_sdk_package(name)] == ["rocm-sdk-core"]


@pytest.mark.parametrize(("text", "fits"), [("gfx94X-dcgpu", True), ("", True), ("two words", False), ("a/b", False)])
def test_a_family_is_one_word(text: str, fits: bool) -> None:
    assert is_family(text) is fits


def test_a_module_has_the_family_in_its_name_with_underscores() -> None:
    assert family_module("_rocm_sdk_libraries", "gfx94X-dcgpu") == "_rocm_sdk_libraries_gfx94X_dcgpu"


def test_a_family_variant_has_the_name_of_the_neutral_package_in_front() -> None:
    assert is_family_variant("rocm-sdk-libraries-gfx94x-dcgpu", "rocm-sdk-libraries")
    assert not is_family_variant("rocm-sdk-libraries", "rocm-sdk-libraries")


def test_a_device_package_is_named_for_its_gpu_target() -> None:
    assert device_target("rocm-sdk-device-gfx942") == "gfx942"
    assert device_target("rocm-sdk-core") == ""
    assert device_extra("gfx942") == "device-gfx942"
