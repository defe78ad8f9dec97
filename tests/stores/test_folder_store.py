"""Folders as stores, on file systems that can't do everything."""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores import folder
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import BrokenTransferError, OutdatedError, TakenError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    """Return a folder of a file system without locks."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    return FolderStore(tmp_path)


@pytest.fixture
def another(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another publisher store ``x`` at the last moment."""
    sync = os.fsync

    def sync_late(descriptor: int) -> None:
        sync(descriptor)
        (store.folder / "x").write_bytes(b"first")

    monkeypatch.setattr(os, "fsync", sync_late)


@pytest.mark.usefixtures("another")
def test_without_locks_no_file_of_another_publisher_is_replaced(store: FolderStore) -> None:
    with pytest.raises(TakenError, match="x: is there already"):
        store.put("x", b"second")
    assert store.read("x") == b"first"
    assert [file.name for file in store.list()] == ["x"]


@pytest.mark.usefixtures("another")
def test_without_locks_no_page_of_another_publisher_is_replaced_by_a_new_one(store: FolderStore) -> None:
    with pytest.raises(OutdatedError):
        store.swap("x", b"second", None)
    assert store.read("x") == b"first"


def test_a_folder_without_locks_is_warned_of_once(store: FolderStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        store.put("x", b"1")
        store.put("y", b"2")
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "can't be locked (No locks available), so let no two runs publish there at the same time"
    ]


def test_files_are_stored_where_there_are_no_links(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store.put("x", b"first")
    with pytest.raises(TakenError):
        store.put("x", b"second")
    assert store.read("x") == b"first"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(folder, "open_unchanged", lambda *_: nullcontext(Failing()))
    with pytest.raises(InputError) as caught:
        FolderStore(tmp_path / "store").put("x", tmp_path / "a.whl")
    assert str(caught.value) == (
        f"{tmp_path}/a.whl: can't be read (Input/output error). Check that it exists and may be read."
    )
    assert list((tmp_path / "store").iterdir()) == []


def test_a_page_whose_tag_cannot_be_read_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page for people would leave its packages out."""

    def fail(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        status = os.stat(path, follow_symlinks=follow_symlinks)  # noqa: PTH116 (this is in its place)
        if path.name == "index.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return status

    monkeypatch.setattr(type(tmp_path), "stat", fail)
    with pytest.raises(BrokenTransferError, match=r"index\.json: can't be read or written \(Input/output error\)"):
        FolderStore(tmp_path).swap("index.json", b"{}", None)
