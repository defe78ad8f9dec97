"""Tests of `rocwheel.device.split.units`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.sequence import read_bundle
from rocwheel.binary.code_objects import FEATURES, CodePlace, TargetId, parse_target_id
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.write import ENTRY_RESERVE
from rocwheel.device.split.units import (
    BundleUnit,
    archive_path,
    base_target,
    code_keys,
    group_units,
    name_groups,
    named_features,
    search_path,
    served_settings,
)
from rocwheel.targets.compatibility import choose, settings_of
from tests.support.fat_libraries import code_of, make_bundle


def _ids(text: str) -> list[TargetId]:
    return [parse_target_id(word) for word in text.split()]


@pytest.mark.parametrize(
    ("target", "base"),
    [
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ("gfx1250-strict", "gfx1250-strict"),
        ("gfx9-4-generic:xnack+", "gfx9-4-generic"),
    ],
)
def test_the_archive_of_a_target_is_named_for_its_processor(target: str, base: str) -> None:
    assert base_target(parse_target_id(target)) == base


@pytest.mark.parametrize(
    ("codes", "features", "keys"),
    [
        pytest.param("gfx90a gfx1030", "", {"gfx90a": 0}, id="open code, nothing named"),
        pytest.param("gfx90a", "xnack", {"gfx90a": 0, "gfx90a:xnack+": 0, "gfx90a:xnack-": 0}, id="open beside named"),
        pytest.param("gfx90a:xnack- gfx90a:xnack+", "xnack", {"gfx90a:xnack-": 0, "gfx90a:xnack+": 1}, id="both named"),
        pytest.param("gfx1030 gfx90a:xnack+", "xnack", {"gfx90a:xnack+": 1}, id="one setting only"),
        pytest.param(
            "gfx90a:xnack- gfx90a", "xnack", {"gfx90a": 1, "gfx90a:xnack-": 0, "gfx90a:xnack+": 1}, id="a rest for open"
        ),
        pytest.param("gfx1030", "xnack", {}, id="another processor"),
    ],
)
def test_a_unit_is_listed_under_all_settings_that_its_code_supports(
    codes: str, features: str, keys: dict[str, int]
) -> None:
    found = code_keys(_ids(codes), "gfx90a", features.split())
    assert {str(key): position for key, position in found.items()} == keys


def test_generic_code_is_listed_only_under_its_own_name() -> None:
    assert served_settings(_ids("gfx11-generic")) == frozenset(_ids("gfx11-generic"))


_GFX90A = st.sampled_from(
    _ids("gfx90a gfx90a:xnack+ gfx90a:xnack- gfx90a:sramecc+ gfx90a:sramecc- gfx90a:sramecc+:xnack-")
)


@given(st.lists(_GFX90A, unique=True, min_size=1), st.lists(_GFX90A, unique=True, min_size=1))
def test_units_in_one_archive_give_each_gpu_the_code_of_its_bundle(one: list[TargetId], other: list[TargetId]) -> None:
    if served_settings(one) != served_settings(other):
        return  # these never share an archive
    features = named_features([*one, *other])
    keys = {id(unit): code_keys(unit, "gfx90a", features) for unit in (one, other)}
    listed = {key for found in keys.values() for key in found}
    for gpu in settings_of(TargetId("gfx90a"), FEATURES):
        asked = [key for key in _by_features(gpu) if key in listed]
        for unit in (one, other):
            choice = choose(unit, gpu)
            expected = None if choice is None else choice.index
            assert (keys[id(unit)].get(asked[0]) if asked else None) == expected


def _by_features(gpu: TargetId) -> list[TargetId]:
    """Return what a runtime asks for on ``gpu``, in this order."""
    bare = TargetId(gpu.processor)
    return [gpu, TargetId(gpu.processor, sramecc=gpu.sramecc), TargetId(gpu.processor, xnack=gpu.xnack), bare]


def test_a_group_is_named_after_its_library() -> None:
    assert name_groups(["lib/librocsparse.so.0.1"]) == {"lib/librocsparse.so.0.1": "librocsparse.so.0.1"}


def test_group_names_have_no_characters_that_windows_forbids() -> None:
    assert name_groups(["lib/a:b c?.so"]) == {"lib/a:b c?.so": "a-b-c-.so"}


def test_two_libraries_with_the_same_name_have_separate_groups() -> None:
    assert name_groups(["a/libx.so", "b/libX.so", "liby.so"]) == {
        "a/libx.so": "libx.so-394a5c07",
        "b/libX.so": "libX.so-aa8abcf0",
        "liby.so": "liby.so",
    }


def test_archives_are_in_the_hidden_folder_below_the_root() -> None:
    assert archive_path("libx.so", "gfx90a") == ".kpack/libx.so_gfx90a.kpack"


@pytest.mark.parametrize(
    ("binary", "path"),
    [
        ("libx.so", ".kpack/libx.so_@GFXARCH@.kpack"),
        ("lib/libx.so", "../.kpack/libx.so_@GFXARCH@.kpack"),
        ("lib/a/b/libx.so", "../../../.kpack/libx.so_@GFXARCH@.kpack"),
    ],
)
def test_a_marker_path_is_relative_to_the_folder_of_its_file(binary: str, path: str) -> None:
    assert search_path(binary, "libx.so") == path


def units(*targets: str) -> list[BundleUnit]:
    bundles = [read_bundle(memoryview(make_bundle(0, text)), 0, place=CodePlace("x")) for text in targets]
    return [BundleUnit(index, bundle, bundle.plain.device_entries) for index, bundle in enumerate(bundles)]


def numbers(*targets: str, limit: int = 1 << 31) -> dict[str, list[int]]:
    groups = group_units(units(*targets), "x.so", limit=limit)
    return {group.name: [unit.index for unit in group.units] for group in groups}


def test_the_largest_group_has_the_name_of_the_library() -> None:
    assert numbers("gfx906", "gfx906 gfx90a", "gfx906 gfx90a") == {"x.so": [1, 2], "x.so-part2": [0]}


def test_units_that_support_the_same_gpus_share_archives() -> None:
    assert numbers("gfx90a", "gfx90a:xnack- gfx90a:xnack+", "gfx90a:xnack+") == {"x.so": [0, 1], "x.so-part2": [2]}


def test_a_library_whose_archive_would_be_too_large_is_divided() -> None:
    size = len(code_of(0, "gfx906")) + ENTRY_RESERVE
    assert numbers(*["gfx906"] * 5, limit=2 * size) == {"x.so": [0, 1], "x.so-part2": [2, 3], "x.so-part3": [4]}


def test_a_unit_too_large_for_any_archive_is_refused() -> None:
    with pytest.raises(KpackError, match="expected at most 100"):
        group_units(units("gfx906"), "x.so", limit=100)


def test_an_archive_lists_the_keys_of_all_its_units() -> None:
    [group] = group_units(units("gfx90a gfx906", "gfx906 gfx90a:xnack- gfx90a:xnack+"), "x.so")
    assert group.targets == ("gfx906", "gfx90a")
    assert group.listed("gfx90a") == ("gfx90a", "gfx90a:xnack+", "gfx90a:xnack-")
    assert group.listed("gfx906") == ("gfx906",)
    assert group.features == {"gfx906": frozenset(), "gfx90a": frozenset({"xnack"})}
