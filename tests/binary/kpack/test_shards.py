"""Tests of the distribution of host files to archives."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.shards import assign_shards

UNITS = st.lists(st.dictionaries(st.sampled_from(["gfx906", "gfx908", "gfx90a"]), st.integers(0, 100), max_size=3))


def test_what_fits_goes_into_one_archive() -> None:
    assert assign_shards([{"gfx906": 40, "gfx908": 60}, {"gfx906": 60}, {"gfx908": 40}], limit=100) == (0, 0, 0)


def test_another_archive_begins_where_one_target_has_no_more_room() -> None:
    assert assign_shards([{"gfx906": 60}, {"gfx908": 60}, {"gfx906": 41}, {"gfx908": 10}], limit=100) == (0, 0, 1, 1)


def test_nothing_needs_no_archive() -> None:
    assert assign_shards([]) == ()


def test_archives_of_the_default_limit_stay_below_two_gigabytes() -> None:
    assert assign_shards([{"gfx906": 1 << 30}, {"gfx906": (1 << 30) - 1}, {"gfx906": 1}]) == (0, 0, 1)


def test_unit_that_fits_nowhere_is_refused() -> None:
    message = "unit 1: offset 0x0: 101 bytes of code for gfx908; expected at most 100, which fit into an archive"
    with pytest.raises(KpackError, match=f"^{re.escape(message)}$"):
        assign_shards([{"gfx906": 1}, {"gfx908": 101}], limit=100)


@given(UNITS)
def test_no_archive_passes_the_limit_and_units_keep_their_order(units: list[dict[str, int]]) -> None:
    shards = assign_shards(units, limit=100)
    filled: Counter[tuple[int, str]] = Counter()
    for shard, sizes in zip(shards, units, strict=True):
        filled.update({(shard, target): size for target, size in sizes.items()})
    assert all(size <= 100 for size in filled.values())
    assert list(shards) == sorted(shards)
    assert set(shards) == set(range(max(shards, default=-1) + 1))
