"""Tests of folders that appear when they are whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.writing.new_folder import new_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_there", [False, True])
def test_new_or_empty_folder_is_filled(tmp_path: Path, is_there: bool) -> None:
    dest = tmp_path / "dest"
    if is_there:
        dest.mkdir()
    with new_folder(dest) as made:
        (made / "file").write_text("content")
        assert not (dest / "file").exists()
    assert [path.name for path in dest.iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["dest"]


def test_nothing_is_left_of_a_block_that_fails(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is wrong"), new_folder(tmp_path / "dest") as made:
        _fail(made)
    assert list(tmp_path.iterdir()) == []


def _fail(made: Path) -> None:
    (made / "file").write_text("content")
    raise InputError(made, "is wrong")


def test_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    message = f"{tmp_path}: already exists; expected a new or empty folder. Remove it first."
    (tmp_path / "file").write_text("content")
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"), new_folder(tmp_path):
        pass


def test_folder_in_what_is_read_is_refused(tmp_path: Path) -> None:
    message = f"{tmp_path}/in/out: a folder in {tmp_path}/in, which is copied; expected one outside of it"
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"), new_folder(tmp_path / "in/out", tmp_path / "in"):
        pass
