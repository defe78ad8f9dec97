"""Doing the same to many items."""

from __future__ import annotations

import pytest

from rocwheel.foundation.collecting import convert_all, convert_good, map_collecting, raise_all
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError, WorkError


def _fail(item: str) -> str:
    if item == "several":
        raise ProblemsError(item, [InputError("one", "is bad"), InputError("two", "is bad")])
    if item == "full":
        raise WorkError(item, "can't be written")
    if item == "full and more":
        raise ProblemsError(item, [InputError("one", "is bad"), WorkError("two", "can't be written")])
    if item == "accident":
        raise ZeroDivisionError
    if item == "bad":
        raise InputError(item, "is bad")
    return item.upper()


def test_results_come_in_the_order_of_the_items() -> None:
    assert map_collecting(_fail, [chr(code) for code in range(97, 117)], "letters") == tuple("ABCDEFGHIJKLMNOPQRST")


def test_all_problems_are_raised_together_after_those_known_before() -> None:
    with pytest.raises(ProblemsError) as caught:
        map_collecting(_fail, ["bad", "fine", "several"], "the folder", [InputError("zero", "is bad")])
    assert str(caught.value) == ("the folder: 4 problems\n  zero: is bad\n  bad: is bad\n  one: is bad\n  two: is bad")


def test_work_that_failed_is_reported_before_bad_input() -> None:
    with pytest.raises(WorkError, match=r"^full: can't be written$"):
        map_collecting(_fail, ["bad", "full"], "the folder")


def test_an_accident_is_not_taken_for_a_problem() -> None:
    with pytest.raises(ZeroDivisionError):
        map_collecting(_fail, ["accident", "bad"], "the folder")


def test_converted_items_come_in_their_order() -> None:
    assert convert_all("the list", _fail, ["a", "b"]) == ["A", "B"]


def test_one_item_that_fails_raises_its_own_error() -> None:
    with pytest.raises(InputError, match=r"^bad: is bad$"):
        convert_all("the list", _fail, ["a", "bad"])


def test_several_items_that_fail_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        convert_all("the list", _fail, ["bad", "a", "bad"])
    assert str(caught.value) == "the list: 2 problems\n  bad: is bad\n  bad: is bad"


def test_one_item_with_several_problems_raises_them_about_itself() -> None:
    with pytest.raises(ProblemsError) as caught:
        convert_all("the list", _fail, ["a", "several"])
    assert str(caught.value) == "several: 2 problems\n  one: is bad\n  two: is bad"


def test_problems_of_several_items_are_each_reported_by_itself() -> None:
    with pytest.raises(ProblemsError) as caught:
        convert_all("the list", _fail, ["bad", "several"])
    assert str(caught.value) == "the list: 3 problems\n  bad: is bad\n  one: is bad\n  two: is bad"


def test_no_problem_is_not_an_error() -> None:
    raise_all("the list", [])


def convert(text: str) -> int:
    """Return a number; for ``full`` raise that there is no room, for other text that it is none."""
    if text == "full":
        raise WorkError(text, "has no room")
    if not text.isdigit():
        raise InputError(text, "is no number")
    return int(text)


def test_good_items_are_converted_and_the_errors_of_others_kept() -> None:
    problems: list[RocwheelError] = []
    assert convert_good("numbers", convert, ["1", "x", "2"], problems) == [1, 2]
    assert [str(problem) for problem in problems] == ["x: is no number"]


@pytest.mark.parametrize(("items", "text"), [(["x"], "x: is no number"), (["1", "full"], "full: has no room")])
def test_errors_are_raised_where_nothing_is_good_or_the_work_failed(items: list[str], text: str) -> None:
    problems: list[RocwheelError] = []
    with pytest.raises(InputError, match=f"^{text}$"):
        convert_good("numbers", convert, items, problems)
    assert problems == []


def test_work_that_failed_among_several_problems_of_an_item_is_raised_too() -> None:
    problems: list[RocwheelError] = []
    with pytest.raises(ProblemsError, match=r"^full and more: 2 problems\n"):
        convert_good("items", _fail, ["a", "full and more"], problems)
    assert problems == []


def test_what_failed_for_many_items_word_for_word_is_raised_once() -> None:
    problems = [WorkError("TMPDIR", "names /gone"), WorkError("TMPDIR", "names /gone")]
    with pytest.raises(WorkError, match=r"^TMPDIR: names /gone$"):
        raise_all("paths", problems)
    with pytest.raises(ProblemsError, match=r"^paths: 2 problems\n  TMPDIR: names /gone\n  a: is bad$"):
        raise_all("paths", [*problems, InputError("a", "is bad")])
