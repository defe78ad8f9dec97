"""Tests of `rocwheel.frameworks.jax.bazel_files`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.bazel_files import StarlarkFile, spliced


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\f\"'\\#\0"), max_size=8))
def test_source_positions_are_correct_after_any_text(comment: str) -> None:
    file = StarlarkFile("BUILD", f"# {comment}\ncc_binary()\nf()\n")
    (first, second) = file.tree.body
    splices = [(file.start(first), file.end(first), "x"), (file.line_start(3), file.end(second), "y")]
    assert file.source(first) == "cc_binary()"
    assert spliced(file, splices) == f"# {comment}\nx\ny\n"


@pytest.mark.parametrize("text", ["cc_binary(", "\0", "(" * 500, "é = )"])
def test_text_that_is_not_starlark_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^BUILD: isn't valid Starlark"):
        StarlarkFile("BUILD", text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        StarlarkFile("BUILD", text)
    except InputError as e:
        assert e.source == "BUILD"  # noqa: PT017 (either way is right)
