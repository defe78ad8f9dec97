"""Tests of which texts can be names of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocwheel.foundation.files.names import is_file_name

if TYPE_CHECKING:
    from pathlib import Path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), max_size=300))
@example("é" * 128)
@example("x" * 255)
def test_a_file_can_have_any_such_name(tmp_path: Path, text: str) -> None:
    if is_file_name(text):
        (tmp_path / text).touch()
        assert [path.name for path in tmp_path.iterdir()] == [text]
        (tmp_path / text).unlink()
