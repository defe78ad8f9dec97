"""Numbers in messages."""

from __future__ import annotations

import pytest

from rocwheel.foundation.messages.counting import count, first_of


def test_one_takes_the_singular_and_all_other_numbers_the_plural() -> None:
    assert [count(number, "change") for number in (0, 1, 2)] == ["0 changes", "1 change", "2 changes"]


def test_a_noun_that_does_not_end_in_s_is_given_its_plural() -> None:
    assert [count(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("texts", "line"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
    ids=["none", "one", "all", "too many"],
)
def test_the_first_three_are_named_and_the_others_counted(texts: list[str], line: str) -> None:
    assert first_of(texts) == line


def test_the_number_of_named_texts_and_the_words_for_the_others_can_be_chosen() -> None:
    assert first_of(["/a", "/b", "/c"], 1, more=" or {} more folders") == "/a or 2 more folders"
