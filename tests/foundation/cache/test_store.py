"""The store of entries: nothing wrong comes out of it, whatever happens to its folder or to those who write there."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.cache.entry import Entry
from rocwheel.foundation.cache.store import RESERVE, Store
from rocwheel.foundation.cache.upkeep import prune, read_contents
from tests.support.small_disks import needs_disks, run_on_disk

if TYPE_CHECKING:
    from pathlib import Path


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def entry_of(facts: bytes, data: bytes) -> Entry:
    return Entry(facts, memoryview(data), hashlib.sha256(data).digest())


def test_an_entry_is_had_by_its_key_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    store.put(key(1), b"facts", b"data")
    assert store.get(key(1)) == entry_of(b"facts", b"data")
    assert store.get(key(2)) is None
    assert (store.has(key(1)), store.has(key(2))) == (True, False)


def test_the_folder_is_the_users_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    store.put(key(1), b"", b"data")
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert store.path_of(key(1)).stat().st_mode & 0o777 == 0o600


def test_a_flipped_bit_is_told_and_the_entry_can_be_kept_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    store.put(key(1), b"facts", b"data")
    path = store.path_of(key(1))
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 4
    path.write_bytes(raw)
    assert store.get(key(1)) is None
    assert [record.getMessage() for record in caplog.records] == [f"{path}: was damaged, and is made anew"]
    store.put(key(1), b"facts", b"data")
    assert store.get(key(1)) == entry_of(b"facts", b"data")


@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_what_is_no_file_is_told_and_kept_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str) -> None:
    store = Store(tmp_path)
    path = store.path_of(key(1))
    path.parent.mkdir()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    assert store.get(key(1)) is None
    store.put(key(1), b"facts", b"data")
    assert store.get(key(1)) == entry_of(b"facts", b"data")
    assert [record.getMessage() for record in caplog.records] == [f"{path}: was damaged, and is made anew"]


def test_a_folder_with_files_in_the_place_of_an_entry_is_told_once_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    path = store.path_of(key(1))
    path.mkdir(parents=True)
    (path / "notes.txt").touch()
    for number in (1, 2):
        assert store.get(key(number)) is None
        store.put(key(number), b"facts", b"data")
    assert (store.get(key(1)), store.get(key(2))) == (None, entry_of(b"facts", b"data"))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: is a folder in the place of a file, and is passed over"
    ]
    assert (path / "notes.txt").exists()


PUT = """
import logging, sys
from pathlib import Path
from rocwheel.foundation.cache.store import Store
logging.basicConfig(format="%(message)s", stream=sys.stdout)
store = Store(Path(sys.argv[1]))
for number in range(3):
    store.put(bytes([number]) * 32, b"", b"data")
    print(store.get(bytes([number]) * 32))
"""


@needs_disks
@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        pytest.param("ro", "Read-only file system", id="read-only"),
        pytest.param("size=4m", "less than 256 MiB of the disk would stay free", id="too small"),
    ],
)
def test_a_disk_that_takes_nothing_is_told_of_once(tmp_path: Path, options: str, trouble: str) -> None:
    done = run_on_disk(tmp_path, options, [sys.executable, "-c", PUT, tmp_path / "kept"])
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'kept'}: can't be written ({trouble}); going on without the cache",
        *["None"] * 3,
    ]


def test_a_disk_keeps_room_for_what_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    disk = os.statvfs(tmp_path)
    free = (RESERVE + 3) // disk.f_frsize

    class Disk:
        f_bavail, f_frsize = free, disk.f_frsize

    monkeypatch.setattr(os, "statvfs", lambda _: Disk)
    store.put(key(1), b"", bytes(disk.f_frsize))
    store.put(key(2), b"", b"")
    assert read_contents(tmp_path).entries == ()
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: can't be written (less than 256 MiB of the disk would stay free); going on without the cache"
    ]


def test_a_disk_that_fills_up_in_an_entry_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writing = os.write

    def fill_up(descriptor: int, data: memoryview) -> int:
        if len(data) <= 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return writing(descriptor, data[:50])

    monkeypatch.setattr(os, "write", fill_up)
    Store(tmp_path).put(key(1), b"", bytes(100))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert len(caplog.records) == 1


def test_an_entry_that_is_used_counts_as_new(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in (1, 2):
        store.put(key(number), b"", b"data")
        os.utime(store.path_of(key(number)), (number, number))
    store.get(key(1))
    assert [entry.key for entry in read_contents(tmp_path).entries] == [key(2), key(1)]
    assert store.path_of(key(1)).stat().st_mtime > time.time() - 60


def test_many_threads_and_stores_keep_the_same_entries(tmp_path: Path) -> None:
    stores = [Store(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(8) as executor:
        for number in range(40):
            for store in stores:
                executor.submit(store.put, key(number % 10), b"", b"%d" % (number % 10) * 1000)
    assert [bytes(entry.data) for n in range(10) if (entry := stores[0].get(key(n)))] == [
        b"%d" % number * 1000 for number in range(10)
    ]
    assert len(read_contents(tmp_path).entries) == 10


def test_a_store_that_is_pickled_knows_its_folder(tmp_path: Path) -> None:
    Store(tmp_path).put(key(1), b"", b"data")
    assert pickle.loads(pickle.dumps(Store(tmp_path))).get(key(1)) == entry_of(b"", b"data")


KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from rocwheel.foundation.cache.store import Store
at = int(sys.argv[2])
steps = itertools.count()
def counted(call):
    def run(*args, **kwargs):
        if next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return run
os.write = counted(lambda descriptor, data, write=os.write: write(descriptor, data[:40]))
os.replace = counted(os.replace)
Store(Path(sys.argv[1])).put(b"k" * 32, b"facts", b"data" * 20)
"""


def test_a_writer_that_is_killed_at_any_step_leaves_nothing_wrong(tmp_path: Path) -> None:
    """Each step is a write of 40 bytes, or the renaming."""
    outcomes = []
    for step in range(8):
        folder = tmp_path / str(step)
        is_killed = subprocess.run([sys.executable, "-c", KILLED, folder, str(step)], check=False).returncode == -9
        entry = Store(folder).get(b"k" * 32)
        assert entry in (None, entry_of(b"facts", b"data" * 20))
        outcomes.append((is_killed, entry is not None))
        prune(folder, 1 << 20)
        assert len([path for path in folder.rglob("*") if path.is_file()]) == (entry is not None)
    assert outcomes == [(True, False)] * 6 + [(False, True)] * 2
