"""Numbers with their noun."""

from __future__ import annotations

from rocwheel.foundation.counting import count


def test_one_takes_the_singular_and_all_other_numbers_the_plural() -> None:
    assert [count(number, "change") for number in (0, 1, 2)] == ["0 changes", "1 change", "2 changes"]


def test_a_noun_that_does_not_end_in_s_is_given_its_plural() -> None:
    assert [count(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
