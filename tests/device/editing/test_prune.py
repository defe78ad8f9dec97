"""Tests of deciding which code GPUs to keep need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.code_objects import Place, TargetId, parse_target_id
from rocwheel.device.editing.prune import Prune, needed_code, serves
from rocwheel.targets.compatibility import covers

HIP = "hipv4-amdgcn-amd-amdhsa--"
CODE = (memoryview(b"code"),)


def needed(codes: str, keep: str) -> str:
    found = needed_code(map(parse_target_id, codes.split()), [parse_target_id(word) for word in keep.split()])
    return " ".join(code for code in codes.split() if parse_target_id(code) in found)


@pytest.mark.parametrize(
    ("code", "wanted", "is_served"),
    [
        ("gfx90a", "gfx90a", True),
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx90a", "gfx90a:xnack+", True),
        ("gfx90a:xnack-", "gfx90a:xnack+", False),
        ("gfx90a:sramecc+", "gfx90a:xnack+", True),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx9-4-generic", "gfx90a", False),
        ("gfx942", "gfx9-4-generic", False),
        ("amdgcnspirv", "gfx942", True),
        ("gfx942", "amdgcnspirv", False),
        ("gfx906", "gfx900", False),
    ],
)
def test_code_serves_what_some_gpu_of_the_target_runs(code: str, wanted: str, is_served: bool) -> None:
    assert serves(parse_target_id(code), parse_target_id(wanted)) == is_served


@pytest.mark.parametrize(
    ("codes", "keep", "expected"),
    [
        ("gfx90a gfx9-4-generic", "gfx90a gfx942", "gfx90a gfx9-4-generic"),
        ("gfx90a gfx9-4-generic", "gfx942", "gfx9-4-generic"),
        ("gfx942 gfx9-4-generic", "gfx942", "gfx942"),
        ("gfx942 gfx9-4-generic", "gfx942 gfx950", "gfx942 gfx9-4-generic"),
        ("gfx942:xnack+ gfx9-4-generic", "gfx942", "gfx942:xnack+ gfx9-4-generic"),
        ("gfx942:xnack+ gfx9-4-generic", "gfx942:xnack+", "gfx942:xnack+"),
        ("gfx942:xnack+ gfx942:xnack- gfx9-4-generic", "gfx942", "gfx942:xnack+ gfx942:xnack-"),
        ("gfx9-4-generic gfx9-4-generic:xnack+", "gfx942:xnack-", "gfx9-4-generic"),
        ("gfx906 amdgcnspirv", "gfx906", "gfx906"),
        ("gfx906 amdgcnspirv", "gfx1100", "amdgcnspirv"),
        ("gfx906 amdgcnspirv", "amdgcnspirv", "amdgcnspirv"),
        ("gfx906 gfx90a", "gfx90a:xnack+", "gfx90a"),
    ],
)
def test_generic_code_stays_while_a_gpu_to_keep_lacks_its_own(codes: str, keep: str, expected: str) -> None:
    assert needed(codes, keep) == expected


WORDS = ["gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx950", "gfx9-4-generic", "amdgcnspirv", "gfx1100"]
IDS = st.sets(st.sampled_from([parse_target_id(word) for word in WORDS]), min_size=1)
GPUS = IDS.map(lambda ids: {target for target in ids if not target.is_generic})


@given(IDS, GPUS)
def test_gpus_to_keep_lose_nothing(codes: set[TargetId], keep: set[TargetId]) -> None:
    left = needed_code(codes, list(keep))
    for wanted in keep:
        assert covers(left, wanted) == covers(codes, wanted)


def test_empty_code_does_not_stand_in_for_generic_code() -> None:
    parts = (BundlePart(HIP + "gfx9-4-generic", CODE), BundlePart(HIP + "gfx942"))
    kept = Prune((parse_target_id("gfx942"),))(parts, place=Place("x"))
    assert [part.spelling for part in kept] == [HIP + "gfx9-4-generic"]
