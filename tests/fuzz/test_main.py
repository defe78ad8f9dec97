"""``python -m fuzz``, which ``make fuzz`` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz.__main__ import main
from tests.support.given_words import read_words

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTIONS, _NAMES = ("--record", "--long"), ("elf.facts", "elf.traits", "pe.facts")


@pytest.mark.parametrize(
    ("words", "options", "names"),
    [
        ([], set(), _NAMES),
        (["--long"], {"--long"}, _NAMES),
        (["pe.facts", "elf."], set(), _NAMES),
        (["elf.t", "--record"], {"--record"}, ("elf.traits",)),
    ],
)
def test_words_are_options_and_beginnings_of_names(
    words: Sequence[str], options: set[str], names: Sequence[str]
) -> None:
    given, chosen = read_words(words, _OPTIONS, _NAMES, "harness")
    assert (set(given), chosen) == (options, names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["elf.", "weels.", "x"], "no such harness: weels., x; there are elf.facts, elf.traits, pe.facts"),
        (["elf.", "--recrod"], "no such option: --recrod; there are --record, --long"),
    ],
)
def test_a_word_that_means_nothing_is_told_beside_what_there_is(words: Sequence[str], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        read_words(words, _OPTIONS, _NAMES, "harness")


def test_nothing_is_run_where_one_word_means_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["elf.", "no-such"]) == 2
    assert capsys.readouterr().err.startswith("no such harness: no-such; there are elf.facts, elf.traits, elf.run_path")
