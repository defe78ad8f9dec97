"""Tests of `rocwheel.frameworks.jax.settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import ProblemsError
from rocwheel.frameworks.jax.settings import BazelSettings, read_settings, settings_line

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.one_of(TEXTS, st.integers(0, 9), st.lists(TEXTS), st.dictionaries(TEXTS, TEXTS, min_size=1)))
def test_a_settings_line_can_be_parsed_back_to_the_value(value: object) -> None:
    assert settings_line("name", value).count("\n") == 1
    assert msgspec.toml.decode(settings_line("name", value)) == {"name": value}
    assert msgspec.toml.decode(settings_line("name", value, width=10)) == {"name": value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["a", "b"], 'name = ["a", "b"]\n'),
        (["a" * 60, "b" * 60], f'name = [\n    "{"a" * 60}",\n    "{"b" * 60}",\n]\n'),
        ({"a": "b"}, 'name = { "a" = "b" }\n'),
    ],
)
def test_long_lists_have_one_line_per_item(value: object, text: str) -> None:
    assert settings_line("name", value, width=110) == text


def test_settings_for_a_patch_need_no_python_version(tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text('schema = 1\ntree = "jax"\n')
    assert read_settings(path, needs_python=False) == BazelSettings(1, tree="jax")
    with pytest.raises(ProblemsError, match="python-versions is empty"):
        read_settings(path)
