"""Tests of `rocwheel.device.split.overlays`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.code_objects import CodePlace, TargetId, parse_target_id
from rocwheel.device.split.overlays import PruneToSome, default_common
from rocwheel.targets.compatibility import choose


@pytest.mark.parametrize(
    ("codes", "common"),
    [
        pytest.param("gfx906 gfx1030 gfx11-generic gfx9-generic", "gfx9-generic gfx11-generic", id="generic targets"),
        pytest.param("gfx803 gfx90a:xnack+ gfx1030 gfx906", "gfx1030", id="the one whose code the most GPUs can use"),
        pytest.param("gfx908 gfx906", "gfx908", id="of equal ones the newest"),
        pytest.param("gfx906:xnack-", "gfx906", id="whatever its features"),
        pytest.param("amdgcnspirv", "", id="none of SPIR-V alone"),
        pytest.param("", "", id="none without code"),
    ],
)
def test_the_default_common_set_covers_many_gpus_with_little_code(codes: str, common: str) -> None:
    found = default_common(map(parse_target_id, codes.split()))
    assert [str(target) for target in found] == common.split()


TARGETS = ["gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030", "gfx1100", "gfx11-generic", "gfx10-3-generic"]
PLACE = CodePlace("a bundle")


def part(target: str, size: int) -> BundlePart:
    return BundlePart(f"hipv4-amdgcn-amd-amdhsa--{target}", (memoryview(b"x" * size),))


@given(
    st.dictionaries(st.sampled_from(TARGETS), st.integers(1, 9), min_size=1),
    st.sampled_from(["gfx906", "gfx90a", "gfx1030", "gfx1031", "gfx1100", "gfx1103", "gfx942"]),
)
def test_pruning_keeps_some_code_and_does_not_change_what_a_gpu_uses(sizes: dict[str, int], gpu: str) -> None:
    parts = (BundlePart("host-x86_64-unknown-linux--"), *(part(target, size) for target, size in sizes.items()))
    kept = PruneToSome((TargetId(gpu),))(parts, place=PLACE)
    before, after = ([one.target for one in some if one.target] for some in (parts, kept))
    assert after
    assert kept[0] == parts[0]
    for agent in (parse_target_id(gpu), *(parse_target_id(f"gfx90a:xnack{sign}") for sign in "+-" if gpu == "gfx90a")):
        chosen, found = choose(before, agent), choose(after, agent)
        assert (chosen and chosen.code) == (found and found.code)


def test_a_bundle_without_code_for_the_target_keeps_its_smallest_code_object() -> None:
    parts = (BundlePart("host-x86_64-unknown-linux--"), part("gfx906", 5), part("gfx1030", 3), part("gfx942", 4))
    assert PruneToSome((TargetId("gfx1100"),))(parts, place=PLACE) == (parts[0], parts[2])


def test_a_bundle_that_had_no_code_is_not_changed() -> None:
    parts = (BundlePart("host-x86_64-unknown-linux--"), part("gfx906", 0))
    assert PruneToSome((TargetId("gfx906"),))(parts, place=PLACE) == parts
