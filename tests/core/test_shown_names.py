"""The names of files that stand for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core import shown_names

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_file_of_a_folder_that_was_fetched_has_its_url_and_a_whole_path_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_names, "_names", {})
    (tmp_path / "x-1.0.whl").touch()
    shown_names.show_as(tmp_path, "https://host/dist")
    assert shown_names.place_of("x-1.0.whl") == "https://host/dist/x-1.0.whl"
    assert shown_names.place_of("y-1.0.whl") == "y-1.0.whl"
    assert shown_names.place_of(str(tmp_path / "x-1.0.whl")) == str(tmp_path / "x-1.0.whl")
