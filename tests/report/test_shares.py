"""Tests of dividing sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.report.savings import divide


@pytest.mark.parametrize(
    ("whole", "weights", "parts"),
    [(10, [1, 1], [5, 5]), (10, [2, 1], [6, 4]), (1, [1, 1, 1], [0, 0, 1]), (7, [0, 0], [3, 4]), (7, [], [])],
)
def test_parts_are_in_proportion(whole: int, weights: list[int], parts: list[int]) -> None:
    assert divide(whole, weights) == parts


@given(st.integers(0, 1 << 50), st.lists(st.integers(0, 1 << 50), min_size=1))
def test_parts_add_up_to_the_whole_and_none_is_off_by_more_than_one(whole: int, weights: list[int]) -> None:
    parts = divide(whole, weights)
    assert sum(parts) == whole
    if total := sum(weights):
        assert all(abs(part * total - whole * weight) <= total for part, weight in zip(parts, weights, strict=True))
