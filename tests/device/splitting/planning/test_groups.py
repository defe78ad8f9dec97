"""Which units share archives, and how the units of large libraries are parted."""

from __future__ import annotations

import pytest

from rocwheel.binary.bundles.sequence import read_bundle
from rocwheel.binary.code_objects import Place
from rocwheel.binary.kpack.archive import KpackError
from rocwheel.binary.kpack.write import ENTRY_RESERVE
from rocwheel.device.splitting.planning.groups import group_units
from rocwheel.device.splitting.planning.units import Unit
from tests.support.fat_libraries import code_of, make_bundle


def units(*targets: str) -> list[Unit]:
    bundles = [read_bundle(memoryview(make_bundle(0, text)), 0, place=Place("x")) for text in targets]
    return [Unit(index, bundle, bundle.plain.device_entries) for index, bundle in enumerate(bundles)]


def numbers(*targets: str, limit: int = 1 << 31) -> dict[str, list[int]]:
    groups = group_units(units(*targets), "x.so", limit=limit)
    return {group.name: [unit.index for unit in group.units] for group in groups}


def test_the_largest_group_has_the_name_of_the_library() -> None:
    assert numbers("gfx906", "gfx906 gfx90a", "gfx906 gfx90a") == {"x.so": [1, 2], "x.so-part2": [0]}


def test_units_with_open_and_named_features_share_archives_if_they_serve_the_same_gpus() -> None:
    assert numbers("gfx90a", "gfx90a:xnack- gfx90a:xnack+", "gfx90a:xnack+") == {"x.so": [0, 1], "x.so-part2": [2]}


def test_a_library_whose_archive_would_be_too_large_is_parted() -> None:
    size = len(code_of(0, "gfx906")) + ENTRY_RESERVE
    assert numbers(*["gfx906"] * 5, limit=2 * size) == {"x.so": [0, 1], "x.so-part2": [2, 3], "x.so-part3": [4]}


def test_a_unit_that_no_archive_can_hold_is_refused() -> None:
    with pytest.raises(KpackError, match="expected at most 100"):
        group_units(units("gfx906"), "x.so", limit=100)


def test_an_archive_lists_the_keys_of_all_its_units() -> None:
    [group] = group_units(units("gfx90a gfx906", "gfx906 gfx90a:xnack- gfx90a:xnack+"), "x.so")
    assert group.targets == ("gfx906", "gfx90a")
    assert group.listed("gfx90a") == ("gfx90a", "gfx90a:xnack+", "gfx90a:xnack-")
    assert group.listed("gfx906") == ("gfx906",)
    assert group.features == {"gfx906": frozenset(), "gfx90a": frozenset({"xnack"})}
