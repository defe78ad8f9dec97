"""Which keys an archive lists the code of a unit under."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.device.splitting.planning.keys import base_target, code_keys, named_features, served_settings
from rocwheel.targets.compatibility import choose, settings_of


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
def test_the_archive_of_a_target_is_that_of_its_processor(target: str, base: str) -> None:
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
def test_a_unit_is_listed_under_all_settings_that_its_code_serves(
    codes: str, features: str, keys: dict[str, int]
) -> None:
    found = code_keys(_ids(codes), "gfx90a", features.split())
    assert {str(key): position for key, position in found.items()} == keys


def test_generic_code_serves_its_own_name_and_not_that_of_its_members() -> None:
    assert served_settings(_ids("gfx11-generic")) == frozenset(_ids("gfx11-generic"))


_GFX90A = st.sampled_from(
    _ids("gfx90a gfx90a:xnack+ gfx90a:xnack- gfx90a:sramecc+ gfx90a:sramecc- gfx90a:sramecc+:xnack-")
)


@given(st.lists(_GFX90A, unique=True, min_size=1), st.lists(_GFX90A, unique=True, min_size=1))
def test_whatever_two_units_of_one_archive_name_each_gpu_finds_what_its_bundle_would_give(
    one: list[TargetId], other: list[TargetId]
) -> None:
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
