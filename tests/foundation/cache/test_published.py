"""Tests of the notes of publishers: they are kept apart for each folder, and don't grow without limit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.cache import published
from rocwheel.foundation.cache.published import keep_published, published_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the notes of three folders, 100 bytes each, the least recently used first."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path))
    found = [published_folder(tmp_path / f"dist{number}") for number in range(3)]
    for day, folder in enumerate(found):
        folder.mkdir(parents=True)
        (folder / "notes.json").write_bytes(bytes(100))
        os.utime(folder, (86400 * day, 86400 * day))
    return found


def test_notes_are_kept_below_the_cache_folder(folders: list[Path], tmp_path: Path) -> None:
    assert {folder.parent for folder in folders} == {tmp_path / "published"}
    assert len({*folders}) == 3


@pytest.mark.parametrize(("limit", "left"), [(300, [True, True, True]), (250, [True, False, True])])
def test_the_notes_used_last_stay(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch, limit: int, left: list[bool]
) -> None:
    monkeypatch.setattr(published, "_LIMIT", limit)
    keep_published(folders[0])
    assert [folder.exists() for folder in folders] == left


def test_there_need_be_no_notes(tmp_path: Path) -> None:
    keep_published(tmp_path / "published" / "none")
    assert not (tmp_path / "published").exists()
