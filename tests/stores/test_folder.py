"""Folders as stores, on file systems that can't do everything, and with writers in several processes."""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores import folder
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import BrokenTransferError, OutdatedError, TakenError

if TYPE_CHECKING:
    from collections.abc import Iterator
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
def test_a_file_of_another_publisher_is_not_replaced_without_locks(store: FolderStore) -> None:
    with pytest.raises(TakenError, match="x: already exists"):
        store.put("x", b"second")
    assert store.read("x") == b"first"
    assert [file.name for file in store.list()] == ["x"]


@pytest.mark.usefixtures("another")
def test_a_new_page_does_not_replace_a_page_of_another_publisher_without_locks(store: FolderStore) -> None:
    with pytest.raises(OutdatedError):
        store.swap("x", b"second", None)
    assert store.read("x") == b"first"


def test_a_folder_without_locks_causes_one_warning(store: FolderStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        store.put("x", b"1")
        store.put("y", b"2")
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "can't be locked (No locks available); make sure that only one run publishes there at a time"
    ]


def test_files_are_stored_without_hard_link_support(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store.put("x", b"first")
    with pytest.raises(TakenError):
        store.put("x", b"second")
    assert store.read("x") == b"first"


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(folder, "open_unchanged", lambda *_: nullcontext(Failing()))
    with pytest.raises(InputError) as caught:
        FolderStore(tmp_path / "store").put("x", tmp_path / "a.whl")
    assert str(caught.value) == (
        f"{tmp_path}/a.whl: can't be read (Input/output error). Check whether it exists and is readable."
    )
    assert list((tmp_path / "store").iterdir()) == []


def test_a_page_with_an_unreadable_tag_is_not_treated_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page for people would leave its packages out."""

    def fail(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        status = os.stat(path, follow_symlinks=follow_symlinks)  # noqa: PTH116 (this is in its place)
        if path.name == "index.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return status

    monkeypatch.setattr(type(tmp_path), "stat", fail)
    with pytest.raises(BrokenTransferError, match=r"index\.json: can't be read or written \(Input/output error\)"):
        FolderStore(tmp_path).swap("index.json", b"{}", None)


HALTED = """
import sys
from pathlib import Path
from rocwheel.core.writing import AtomicFile
from rocwheel.stores.folder import FolderStore

commit = AtomicFile.commit

def halting(*arguments):
    print("found as it was", flush=True)
    sys.stdin.readline()
    commit(*arguments)

AtomicFile.commit = halting
store = FolderStore(Path(sys.argv[1]))
store.swap("simple/page", b"theirs", store.load("simple/page").e_tag)
"""
WAITING = "{}: is being written to by another run; waiting until it ends"
COUNTING = """
import sys
from pathlib import Path
from rocwheel.stores.store import OutdatedError
from rocwheel.stores.folder import FolderStore

store, name = FolderStore(Path(sys.argv[1])), sys.argv[2]
done = 0
while done < 100:
    before = store.load(name)
    try:
        store.swap(name, before.data + b".", before.e_tag)
    except OutdatedError:
        continue
    done += 1
"""


@pytest.fixture
def halted(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that has found ``simple/page`` as it was, and replaces it when it reads a line."""
    (tmp_path / "simple").mkdir()
    (tmp_path / "simple/page").write_bytes(b"first")
    command = [sys.executable, "-c", HALTED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "found as it was\n"
        yield process


class _Ending:
    """A log that lets the other process go on once it hears that it is waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said: list[str] = []

    def warning(self, text: str, *words: object) -> None:
        """Note what is said."""
        self.said.append(text % words)
        assert self._process.stdin
        self._process.stdin.close()


def test_a_page_being_replaced_through_a_parent_store_is_not_lost(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _Ending(halted)
    monkeypatch.setattr("rocwheel.core.scratch.logger", log)
    store = FolderStore(tmp_path / "simple")
    with pytest.raises(OutdatedError):
        store.swap("page", b"ours", store.load("page").e_tag)
    assert (halted.wait(), store.read("page")) == (0, b"theirs")
    assert log.said == [WAITING.format(tmp_path / "simple")]


def test_a_file_stored_in_the_meantime_is_not_replaced_by_a_new_file(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.core.scratch.logger", _Ending(halted))
    FolderStore(tmp_path / "simple").put("other", b"1")
    with pytest.raises(TakenError):
        FolderStore(tmp_path).put("simple/other", b"2")
    assert (halted.wait(), FolderStore(tmp_path).read("simple/other")) == (0, b"1")


def test_no_change_by_four_concurrent_processes_is_lost(tmp_path: Path) -> None:
    (tmp_path / "simple").mkdir()
    (tmp_path / "simple/page").touch()
    places = [(tmp_path, "simple/page"), (tmp_path / "simple", "page")] * 2
    running = [subprocess.Popen([sys.executable, "-c", COUNTING, str(root), name]) for root, name in places]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert (tmp_path / "simple/page").read_bytes() == b"." * 400


def test_a_lock_leaves_no_file(tmp_path: Path) -> None:
    FolderStore(tmp_path).put("dist/x", b"1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dist", "x"]
