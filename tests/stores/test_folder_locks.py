"""Writers of one folder in several processes: none loses what another has written, wherever a store is opened."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import OutdatedError, TakenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
WAITING = "{}: is being written by another run; waiting for its end"
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


def test_a_page_that_a_store_above_is_replacing_is_not_lost(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _Ending(halted)
    monkeypatch.setattr("rocwheel.core.scratch.logger", log)
    store = FolderStore(tmp_path / "simple")
    with pytest.raises(OutdatedError):
        store.swap("page", b"ours", store.load("page").e_tag)
    assert (halted.wait(), store.read("page")) == (0, b"theirs")
    assert log.said == [WAITING.format(tmp_path / "simple")]


def test_what_comes_meanwhile_is_not_replaced_by_a_new_file(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.core.scratch.logger", _Ending(halted))
    FolderStore(tmp_path / "simple").put("other", b"1")
    with pytest.raises(TakenError):
        FolderStore(tmp_path).put("simple/other", b"2")
    assert (halted.wait(), FolderStore(tmp_path).read("simple/other")) == (0, b"1")


def test_no_change_of_four_processes_is_lost(tmp_path: Path) -> None:
    (tmp_path / "simple").mkdir()
    (tmp_path / "simple/page").touch()
    places = [(tmp_path, "simple/page"), (tmp_path / "simple", "page")] * 2
    running = [subprocess.Popen([sys.executable, "-c", COUNTING, str(root), name]) for root, name in places]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert (tmp_path / "simple/page").read_bytes() == b"." * 400


def test_a_lock_leaves_no_file(tmp_path: Path) -> None:
    FolderStore(tmp_path).put("dist/x", b"1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dist", "x"]
