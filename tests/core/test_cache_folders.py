"""Tests of `rocwheel.core.cache_folders`."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from rocwheel.core import cache_folders
from rocwheel.core.cache import Pruned
from rocwheel.core.cache_folders import claim, keep_published, list_folders, prune_folders, published_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folders, "_claimed", {})


def test_a_process_can_claim_its_folder_again(tmp_path: Path) -> None:
    assert [claim(tmp_path / "x"), claim(tmp_path / "x")] == [tmp_path / "x"] * 2


def test_another_process_gets_a_numbered_sibling_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = claim(tmp_path / "x")
    monkeypatch.setattr(cache_folders, "_claimed", {})
    assert (first, claim(tmp_path / "x")) == (tmp_path / "x", tmp_path / "x-1")


def test_a_claimed_folder_is_marked_as_most_recently_used(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1, 1))
    claim(tmp_path / "a")
    assert [one.path for one in list_folders(tmp_path)] == [str(tmp_path / "b"), str(tmp_path / "a")]


def test_a_missing_cache_has_no_folders(tmp_path: Path) -> None:
    assert list_folders(tmp_path / "no") == []
    assert prune_folders(tmp_path / "no", 0).left == 0


def test_symlinks_are_not_followed_when_pruning(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x").write_bytes(b"1")
    (tmp_path / "fetched").mkdir()
    (tmp_path / "fetched" / "link").symlink_to(tmp_path / "there")
    assert prune_folders(tmp_path / "fetched", 0).removed == 0
    assert (tmp_path / "there" / "x").exists()


def test_a_folder_pruned_while_it_is_claimed_is_recreated(tmp_path: Path) -> None:
    stop = threading.Event()

    def prune() -> None:
        while not stop.is_set():
            prune_folders(tmp_path / "fetched", 0)

    thread = threading.Thread(target=prune)
    thread.start()
    try:
        claimed = [claim(tmp_path / "fetched" / str(number)) for number in range(50)]
        for folder in claimed:
            (folder / "x").write_bytes(b"1")
    finally:
        stop.set()
        thread.join()
    assert all((folder / "x").exists() for folder in claimed)


def test_nothing_is_pruned_if_the_file_system_has_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    (claim(tmp_path / "x") / "wheel").write_bytes(b"1")
    assert prune_folders(tmp_path, 0) == Pruned(removed=0, removed_bytes=0, left=1, left_bytes=1)
    assert (tmp_path / "x" / "wheel").read_bytes() == b"1"


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


def test_published_records_are_stored_below_the_cache_folder(folders: list[Path], tmp_path: Path) -> None:
    assert {folder.parent for folder in folders} == {tmp_path / "published"}
    assert len({*folders}) == 3


@pytest.mark.parametrize(("limit", "left"), [(300, [True, True, True]), (250, [True, False, True])])
def test_the_most_recently_used_records_are_kept(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch, limit: int, left: list[bool]
) -> None:
    monkeypatch.setattr(cache_folders, "_LIMIT", limit)
    keep_published(folders[0])
    assert [folder.exists() for folder in folders] == left


def test_keeping_missing_records_does_nothing(tmp_path: Path) -> None:
    keep_published(tmp_path / "published" / "none")
    assert not (tmp_path / "published").exists()


def test_a_folder_writable_by_others_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o777)
    assert claim(tmp_path / "a") == tmp_path / "a-1"
