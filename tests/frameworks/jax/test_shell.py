"""Tests of `rocwheel.frameworks.jax.shell`."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax.shell import end_of_expansion, shell_commands
from rocwheel.frameworks.jax.words import shown


@pytest.mark.parametrize(
    ("text", "expansion"),
    [
        ("$NAME-x", "$NAME"),
        ("${NAME:-x}y", "${NAME:-x}"),
        ("${A:-${B}}y", "${A:-${B}}"),
        ("${A:-$B-$C}y", "${A:-$B-$C}"),
        ("$1x", "$1"),
        ("$(a $(b) 'c)' \"d)\")e", "$(a $(b) 'c)' \"d)\")"),
        ('$(a "$(b "c)")" d)e', '$(a "$(b "c)")" d)'),
        ("$(a '\\' b)c", "$(a '\\' b)"),
        ('$(a (b) "it\'s")c', '$(a (b) "it\'s")'),
        ("$(a \\) b)c", "$(a \\) b)"),
    ],
)
def test_an_expansion_ends_with_its_name_or_brackets(text: str, expansion: str) -> None:
    assert end_of_expansion(f"x{text}", 1) == 1 + len(expansion)


@pytest.mark.parametrize("text", ["$", "$ a", "${A", "$(a", "$('a)", "$(" * 30 + ")" * 30, "${" + "$aaa" * 40])
def test_a_dollar_without_an_end_is_no_expansion(text: str) -> None:
    assert end_of_expansion(text, 0) is None


def read(text: str) -> list[str]:
    """Return the commands as ``LINES: WORD|WORD``."""
    return [
        f"{command.first_line}-{command.last_line}: {'|'.join(map(shown, command.words))}"
        for command in shell_commands(text)
    ]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b; c & d | e\n", ["1-1: a|b", "1-1: c", "1-1: d", "1-1: e"]),
        ("a \\\n  b\nc\n", ["1-2: a|b", "3-3: c"]),
        ("a 'b  c' \"d $E\" f\\ g ''\n", ["1-1: a|b  c|d $E|f g|"]),
        ("a 2>&1 >out b <in\n", ["1-1: a|b"]),
        ("a <<EOF b\nc d\nEOF\ne\n", ["1-1: a|b", "4-4: e"]),
        ("a # b\nc#d\n", ["1-1: a", "2-2: c#d"]),
        ('a "b\nc" d\ne\n', ["1-2: a|b\nc|d", "3-3: e"]),
        ("a 'b\n", ["1-1: a|'b"]),
        ("", []),
    ],
)
def test_words_and_lines_are_those_of_the_shell(text: str, commands: list[str]) -> None:
    assert read(text) == commands


def test_an_array_is_kept_with_the_word_that_begins_it() -> None:
    (command,) = shell_commands("OPTIONS=(--a\n  'b c')\n")
    assert (command.words, command.array) == (("OPTIONS=",), ("--a", "b c"))


def test_what_runs_by_the_outcome_of_another_is_chained() -> None:
    assert [command.chained for command in shell_commands("a && b || c; d\n")] == [False, True, True, False]
