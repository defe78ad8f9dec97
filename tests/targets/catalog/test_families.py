"""Families of GPU targets and single targets."""

from __future__ import annotations

import re

import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.targets.catalog import expand_families, families_of, is_family, is_target, targets_of
from rocwheel.targets.errors import UnknownTargetError


def test_families_expand_to_their_targets_in_canonical_order() -> None:
    assert expand_families(["gfx1030", "gfx110X-all", "gfx94X-dcgpu"]) == (
        "gfx942",
        "gfx1030",
        "gfx1100",
        "gfx1101",
        "gfx1102",
        "gfx1103",
    )


def test_a_target_of_two_families_appears_once() -> None:
    assert expand_families(["gfx103X-igpu", "gfx103X-igpu", "gfx1035"]) == ("gfx1033", "gfx1035", "gfx1036")


def test_features_survive_expansion() -> None:
    assert expand_families(["gfx90a:xnack-", "gfx90a:xnack+"]) == ("gfx90a:xnack+", "gfx90a:xnack-")


def test_unknown_family_names_the_nearest() -> None:
    message = "GPU targets: 'gfx94X-dgpu' is not a known GPU target or family. Nearest: gfx94X-dcgpu, "
    with pytest.raises(UnknownTargetError, match=re.escape(message)):
        expand_families(["gfx94X-dgpu"])


def test_several_unknown_names_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        expand_families(["gfx1030", "zzz", "rdna7"], source="--targets")
    assert str(caught.value) == (
        "--targets: 2 problems\n"
        "  --targets: 'zzz' is not a known GPU target or family. `rocwheel targets list` prints them all.\n"
        "  --targets: 'rdna7' is not a known GPU target or family. `rocwheel targets list` prints them all."
    )


def test_families_of_a_target_go_from_itself_to_the_largest() -> None:
    assert families_of("gfx1035") == ("gfx1035", "gfx103X-igpu", "gfx103X-all", "igpu-all")


def test_families_of_a_target_ignore_its_features() -> None:
    families = ("gfx90a", "gfx90a-dcgpu", "gfx90X-all", "gfx90X-dcgpu", "dcgpu-all")
    assert families_of("gfx90a:xnack+") == families


@pytest.mark.parametrize(
    ("name", "family", "target"),
    [
        pytest.param("gfx94X-dcgpu", True, False, id="family"),
        pytest.param("gfx942", False, True, id="target"),
        pytest.param("gfx90a:xnack+", False, True, id="target with a feature"),
        pytest.param("gfx11-generic", False, True, id="generic processor"),
        pytest.param("generic", False, False, id="the field of an artifact without device code"),
    ],
)
def test_families_and_targets_are_distinguished(name: str, family: bool, target: bool) -> None:
    assert (is_family(name), is_target(name)) == (family, target)


def test_a_target_is_a_family_by_itself() -> None:
    assert targets_of("gfx1201") == ("gfx1201",)
