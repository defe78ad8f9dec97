"""Names of packages: by layout, and for each GPU target or family."""

from __future__ import annotations

import pytest

from rocwheel.packages.recipe.load import load_recipe
from rocwheel.packages.recipe.names import PackageNames, for_variant, is_per_family, is_per_variant, name_package

RECIPE = load_recipe()


def test_a_package_for_all_gpus_has_one_name() -> None:
    expected = PackageNames("rocm-sdk-core", "rocm_sdk_core", "_rocm_sdk_core")
    assert name_package(RECIPE, "core", "neutral", "") == expected


def test_a_device_package_goes_into_the_modules_of_the_package_it_completes() -> None:
    expected = PackageNames("rocm-sdk-device-gfx906", "", "_rocm_sdk_libraries")
    assert name_package(RECIPE, "device", "neutral", "gfx906") == expected


def test_a_family_is_part_of_the_names_of_modules_with_underscores() -> None:
    expected = PackageNames(
        "rocm-sdk-libraries-gfx94X-dcgpu", "rocm_sdk_libraries_gfx94X_dcgpu", "_rocm_sdk_libraries_gfx94X_dcgpu"
    )
    assert name_package(RECIPE, "libraries", "per-family", "gfx94X-dcgpu") == expected


def test_without_a_family_its_place_stays_open() -> None:
    names = name_package(RECIPE, "libraries", "per-family")
    assert (names.distribution, names.module) == ("rocm-sdk-libraries-{family}", "rocm_sdk_libraries_{family}")


@pytest.mark.parametrize(
    ("key", "per_variant", "per_family"), [("core", False, False), ("device", True, False)], ids=["core", "device"]
)
def test_device_packages_are_per_target_and_not_per_family(key: str, *, per_variant: bool, per_family: bool) -> None:
    package = RECIPE.packages[key]
    assert (is_per_variant(package, "neutral"), is_per_family(package, "neutral")) == (per_variant, per_family)


def test_a_text_of_the_recipe_names_the_variant() -> None:
    assert for_variant("Kernels for {target} of {family}", "gfx906") == "Kernels for gfx906 of gfx906"
