"""Tests of `rocwheel.environment.sdk_layout`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.build.recipe import load_recipe
from rocwheel.environment.read_tree import read_tree
from rocwheel.environment.sdk_layout import (
    find_sdk_library,
    is_rocm_library,
    other_versions,
    sdk_folders,
    sdk_search_folders,
    sdk_selector,
    short_name,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_folders_match_the_recipe_search_folders() -> None:
    recipe = load_recipe()
    places = (place.partition(":") for place in recipe.packages["libraries"].search)
    folders = tuple(f"{recipe.packages[key].platform_module}/{folder}" for key, _, folder in places)
    assert sdk_search_folders() == folders


def test_each_folder_belongs_to_the_distribution_in_the_recipe() -> None:
    recipe = load_recipe()
    owners = {recipe.packages[key].platform_module: recipe.packages[key] for key in ("core", "libraries")}
    for folder in sdk_folders():
        package = owners[folder.folder.partition("/")[0]]
        assert folder.distribution == package.distribution_in("neutral")
        assert folder.per_family is ("{family}" in (package.distribution_in("per-family") or ""))


def test_the_short_names_match_the_recipe() -> None:
    for name, library in load_recipe().libraries.items():
        assert short_name(library.pattern.replace(".so.*", ".so.1").replace(".so*", ".so.1")) == name


def test_the_selector_requires_the_packages_in_the_recipe() -> None:
    recipe, selector = load_recipe(), sdk_selector()
    names = {key: package.distribution_in("neutral") for key, package in recipe.packages.items()}
    asked = recipe.selector
    assert asked is not None
    assert selector.distribution == asked.distribution
    assert selector.requires == tuple(names[key] for key in asked.requires)
    assert {extra: [name] for extra, (name,) in selector.extras.items()} == {
        extra: [(names[key] or "").replace("-{target}", "") for key in keys] for extra, keys in asked.extras.items()
    }


def test_a_single_family_has_its_own_libraries_folder() -> None:
    assert sdk_search_folders("gfx94X-dcgpu") == (
        "_rocm_sdk_libraries_gfx94X_dcgpu/lib",
        "_rocm_sdk_core/lib",
        "_rocm_sdk_core/lib/rocm_sysdeps/lib",
        "_rocm_sdk_core/lib/host-math/lib",
        "_rocm_sdk_core/lib/llvm/lib",
    )


def test_libraries_in_built_packages_are_in_the_expected_folders(sample_dist: Path) -> None:
    built = {
        (file.name, file.folder) for file in read_tree([sample_dist]).files if file.elf and file.elf.soname == file.name
    }
    known = {(name, folder) for name, folder in built if find_sdk_library(name)}
    assert known == {(name, found.folder) for name, _ in known if (found := find_sdk_library(name))}
    assert len(known) > 10


@pytest.mark.parametrize(
    ("soname", "others"),
    [("libamdhip64.so.6", ["libamdhip64.so.7"]), ("libamdhip64.so.7", []), ("libamdhip64.so", []), ("libfoo.so.1", [])],
)
def test_other_versions_of_a_library_differ_only_in_the_version(soname: str, others: list[str]) -> None:
    assert other_versions(soname) == others


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libamdhip64.so.7", True),
        ("libamdhip64.so.5", True),
        ("libhipfft.so", True),
        ("librocfft.so.0.1", True),
        ("libhipfft_extra.so", False),
        ("libcudart.so.12", False),
        ("libc.so.6", False),
    ],
)
def test_rocm_libraries_are_recognized_in_any_version(name: str, expected: bool) -> None:
    assert is_rocm_library(name) is expected
