"""Tests of where the files of a graph stand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocwheel.report.page import Spot, lay_out


def test_what_loads_stands_left_of_what_it_loads() -> None:
    assert lay_out({"a": ["b", "c"], "b": ["c"], "c": [], "d": ["c"]}) == {
        "a": Spot(0, 0),
        "b": Spot(1, 0),
        "d": Spot(1, 1),
        "c": Spot(2, 0),
    }


def test_files_that_load_each_other_have_places_too() -> None:
    assert set(lay_out({"a": ["b"], "b": ["a"], "c": ["c"]})) == {"a", "b", "c"}


def test_a_chain_may_be_longer_than_the_stack_of_python() -> None:
    chain = {number: [number + 1] for number in range(5000)} | {5000: list[int]()}
    assert lay_out(chain)[0] == Spot(0, 0)
    assert lay_out(chain)[5000] == Spot(5000, 0)


@given(st.dictionaries(st.integers(0, 20), st.lists(st.integers(0, 20))))
def test_no_two_files_stand_at_one_place(loads: dict[int, list[int]]) -> None:
    known = {node: [other for other in others if other in loads] for node, others in loads.items()}
    spots = lay_out(known)
    assert set(spots) == set(known)
    assert len(set(spots.values())) == len(known)
