"""The way back from targets to families and generic processors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import covers
from rocwheel.targets.target_set import TargetSet, fold_to_families, fold_to_generics, parse_target_set

NAMES = st.lists(st.sampled_from([target.name for target in load_catalog().targets]), min_size=1, max_size=20)


@given(NAMES)
def test_families_stand_for_just_the_targets_they_were_made_of(names: list[str]) -> None:
    targets = parse_target_set(names)
    assert parse_target_set(fold_to_families(targets)) == targets


@given(NAMES)
def test_generics_serve_every_target_they_were_made_of(names: list[str]) -> None:
    targets = parse_target_set(names)
    folded = fold_to_generics(targets).ids
    assert all(covers(folded, target) for target in targets)


def test_the_largest_family_that_is_filled_is_named() -> None:
    assert fold_to_families(parse_target_set("gfx103X-all gfx942 gfx1100")) == ("gfx103X-all", "gfx942", "gfx1100")


def test_a_target_with_features_belongs_to_no_family() -> None:
    assert fold_to_families(parse_target_set("gfx1010 gfx1011 gfx1012 gfx908:xnack+")) == (
        "gfx101X-all",
        "gfx908:xnack+",
    )


def test_features_stay_where_the_generic_has_them() -> None:
    assert str(fold_to_generics(parse_target_set("gfx942:xnack+ gfx906:sramecc+"))) == (
        "gfx906:sramecc+;gfx9-4-generic:xnack+"
    )


def test_members_that_name_different_features_share_generic_code_that_names_none() -> None:
    assert str(fold_to_generics(parse_target_set("gfx900 gfx902:xnack+ gfx942:xnack+"))) == (
        "gfx9-generic;gfx9-4-generic:xnack+"
    )


def test_nothing_folds_to_nothing() -> None:
    assert fold_to_families(TargetSet()) == ()
    assert fold_to_generics(TargetSet((TargetId("gfx803"),))) == TargetSet((TargetId("gfx803"),))
