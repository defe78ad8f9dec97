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
def test_a_family_name_is_a_single_word(text: str, fits: bool) -> None:
    assert is_family(text) is fits


def test_a_family_module_name_has_underscores_instead_of_hyphens() -> None:
    assert family_module("_rocm_sdk_libraries", "gfx94X-dcgpu") == "_rocm_sdk_libraries_gfx94X_dcgpu"


def test_the_name_of_a_family_variant_starts_with_the_neutral_package_name() -> None:
    assert is_family_variant("rocm-sdk-libraries-gfx94x-dcgpu", "rocm-sdk-libraries")
    assert not is_family_variant("rocm-sdk-libraries", "rocm-sdk-libraries")


def test_a_device_package_is_named_after_its_gpu_target() -> None:
    assert device_target("rocm-sdk-device-gfx942") == "gfx942"
    assert device_target("rocm-sdk-core") == ""
    assert device_extra("gfx942") == "device-gfx942"
