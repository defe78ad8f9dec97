"""``.bazelrc`` files read, and lines taken out of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.frameworks.jax_checkout.editing.rc_file import config_options, environment, rc_lines, without_lines


def test_configs_have_their_options_with_values_of_either_form() -> None:
    text = (
        "# x\nbuild --jobs=1\nbuild:rocm --repo_env A=1 --copt=-g\n"
        'build:rocm --action_env=B="2 3" \\\n  --define c=d\ntest:rocm -k\nbuild:broken \'\n'
    )
    assert config_options(text) == {
        "rocm": ["--repo_env=A=1", "--copt=-g", "--action_env=B=2 3", "--define=c=d", "-k"],
    }
    assert environment(config_options(text)["rocm"]) == {"A": "1", "B": "2 3"}


@given(st.text("ab\n\\ \t'\"#", max_size=40))
def test_the_lines_of_any_text_make_up_the_text(text: str) -> None:
    assert "".join(line.text for line in rc_lines(text)) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a 1\n\n# about b\nb 2\n\nc 3\n", "a 1\n\nc 3\n"),
        ("a 1\n# about both\nb 2\nc 3\n", "a 1\n# about both\nc 3\n"),
        ("a 1\n\n# about b\nb 2\n", "a 1\n"),
        ("b 2\nb 3\n\na 1\n", "a 1\n"),
        ("a 1\n", "a 1\n"),
    ],
)
def test_a_line_goes_with_the_comment_that_stands_for_it_alone(before: str, after: str) -> None:
    assert without_lines(before, lambda line: line.command == "b") == after
