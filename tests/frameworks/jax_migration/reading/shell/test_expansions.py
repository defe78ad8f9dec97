"""Where expansions of the shell end."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax_migration.reading.shell.expansions import end_of_expansion


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
