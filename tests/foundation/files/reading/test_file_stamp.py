"""Inputs that are not what they were when they were listed."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.reading.file_stamp import ChangedFileError, FileStamp
from rocwheel.foundation.files.reading.regular_files import open_unchanged, unchanged
from tests.support.changing_files import CHANGES, changed_at_read

if TYPE_CHECKING:
    from pathlib import Path

WAYS = {
    "overwritten": "was written to while it was being read",
    "truncated": "changed from 1000 to 500 bytes while it was being read",
    "replaced": "another file took its place while it was being read",
}
REMEDY = "Leave the inputs alone until the work is done, and run it again."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "libamdhip64.so.7"
    path.write_bytes(b"x" * 1000)
    os.utime(path, (1, 1))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_changed_since_it_was_listed_is_refused(path: Path, way: str) -> None:
    source = FileRange.whole(path)
    CHANGES[way](path)
    with pytest.raises(ChangedFileError, match=f"^{re.escape(f'{path}: {WAYS[way]}. {REMEDY}')}$"):
        source.read()


@pytest.mark.parametrize("way", ["overwritten", "truncated"])
def test_a_file_that_changes_while_it_is_read_is_refused(path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_at_read(monkeypatch, path, CHANGES[way])
    source = FileRange.whole(path)
    with pytest.raises(ChangedFileError, match=WAYS[way]):
        source.read()


def test_a_file_that_gets_or_loses_a_link_is_the_same(path: Path) -> None:
    source, other = FileRange.whole(path), path.with_name("other")
    other.hardlink_to(path)
    assert source.read() == b"x" * 1000
    source = FileRange.whole(path)
    other.unlink()
    assert source.read() == b"x" * 1000


def test_a_file_that_lost_its_only_name_while_it_was_open_is_refused(path: Path) -> None:
    stamp = FileStamp.at(path)
    with path.open("rb") as file:
        path.unlink()
        with pytest.raises(ChangedFileError, match="was removed or replaced while it was being read"):
            stamp.require(os.fstat(file.fileno()), str(path))


def test_a_file_that_was_written_to_and_got_a_link_is_refused(path: Path) -> None:
    source = FileRange.whole(path)
    path.with_name("other").hardlink_to(path)
    CHANGES["overwritten"](path)
    with pytest.raises(ChangedFileError, match=WAYS["overwritten"]):
        source.read()


def test_a_file_with_new_permissions_is_refused(path: Path) -> None:
    source = FileRange.whole(path)
    path.chmod(0o600)
    with pytest.raises(ChangedFileError, match=WAYS["overwritten"]):
        source.read()


def test_failed_work_ends_with_status_1(path: Path) -> None:
    source = FileRange.whole(path)
    CHANGES["truncated"](path)
    with pytest.raises(ChangedFileError) as caught:
        source.read()
    assert caught.value.exit_status == 1


def test_reading_leaves_the_stamp_alone(path: Path) -> None:
    stamp = FileStamp.at(path)
    FileRange.whole(path).read()
    assert FileStamp.at(path) == stamp


@pytest.mark.parametrize("way", ["overwritten", "truncated"])
def test_a_file_that_changes_while_it_is_read_as_a_stream_is_refused(path: Path, way: str) -> None:
    with pytest.raises(ChangedFileError, match=WAYS[way]), open_unchanged(path):
        CHANGES[way](path)


def test_damage_that_comes_from_a_change_is_called_a_change(path: Path) -> None:
    with pytest.raises(ChangedFileError, match=WAYS["truncated"]):
        _find_damage(path)


def _find_damage(path: Path) -> None:
    with open_unchanged(path):
        CHANGES["truncated"](path)
        raise EOFError


def test_damage_in_a_file_that_stays_as_it_is_stays_damage(path: Path) -> None:
    with pytest.raises(EOFError), open_unchanged(path):
        raise EOFError


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_changes_while_it_is_read_by_its_path_is_refused(path: Path, way: str) -> None:
    with pytest.raises(ChangedFileError, match=WAYS[way]), unchanged(path):
        CHANGES[way](path)


def test_damage_that_comes_from_another_file_at_the_path_is_called_a_change(path: Path) -> None:
    with pytest.raises(ChangedFileError, match=WAYS["replaced"]):
        _find_damage_by_path(path)


def _find_damage_by_path(path: Path) -> None:
    with unchanged(path):
        CHANGES["replaced"](path)
        raise EOFError
