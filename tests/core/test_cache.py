"""Tests of `rocwheel.core.cache`."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import pwd
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.cache import (
    RESERVE,
    CacheEntry,
    CachePlace,
    DamagedEntryError,
    EntryStore,
    Pruned,
    Trouble,
    VerifiedEntries,
    cache_folder,
    cache_limit,
    packed_cache,
    parse_entry,
    parse_size,
    prune_entries,
    read_contents,
    render_head,
    verify_entries,
)
from rocwheel.core.errors import InputError
from tests.support.small_disks import needs_disks, run_on_disk

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        pytest.param({"ROCWHEEL_CACHE_DIR": "kept", "XDG_CACHE_HOME": "/x"}, "kept", id="rocwheel's variable"),
        pytest.param({"XDG_CACHE_HOME": "/x"}, "/x/rocwheel", id="the standard's variable"),
        pytest.param({"XDG_CACHE_HOME": "x"}, "~/.cache/rocwheel", id="a relative path, which the standard ignores"),
        pytest.param({"ROCWHEEL_CACHE_DIR": ""}, "~/.cache/rocwheel", id="none"),
    ],
)
def test_the_cache_folder_is_set_by_environment_variables(
    environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert cache_folder() == Path(folder).expanduser()


@pytest.mark.parametrize("home", ["", "rel", "./x"])
def test_a_home_that_is_not_absolute_is_treated_as_unset(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    assert cache_folder() == Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache/rocwheel")


def test_a_user_without_a_home_folder_gets_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROCWHEEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    message = (
        "ROCWHEEL_CACHE_DIR: isn't set, and this user has no home folder; expected a folder for the "
        "rocwheel cache. Set ROCWHEEL_CACHE_DIR to the path of a folder."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        cache_folder()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("123", 123),
        ("20GB", 20_000_000_000),
        ("1.5 TiB", 1649267441664),
        ("2k", 2000),
        ("3mib", 3 << 20),
        (".5GB", 500_000_000),
    ],
)
def test_sizes_can_have_decimal_and_binary_units(text: str, size: int) -> None:
    assert parse_size(text, source="--limit") == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "1PB", "1e9", "5 GB left", "\u0665MB", ".", "5.", "5\u212ab"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--limit: is '.*'; expected a size, such as 20GB or 500MiB"):
        parse_size(text, source="--limit")


def test_a_size_larger_than_any_disk_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"--limit: is '9+'\.\.\. \(400 characters\); expected a size that fits on a disk"
    ):
        parse_size("9" * 400, source="--limit")


def test_packed_members_have_their_own_folder_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", "/c")
    assert packed_cache({}) == CachePlace(Path("/c/packed"), 10_000_000_000)
    assert packed_cache({"ROCWHEEL_CACHE_LIMIT": "1GB"}).limit == 1_000_000_000


def test_an_invalid_limit_names_its_variable() -> None:
    with pytest.raises(InputError, match="ROCWHEEL_CACHE_LIMIT: is 'much'"):
        cache_limit({"ROCWHEEL_CACHE_LIMIT": "much"})


KEY = hashlib.sha256(b"key").digest()


def entry_bytes(facts: bytes, data: bytes, key: bytes = KEY) -> bytes:
    return render_head(key, facts, len(data), hashlib.sha256(data).digest()) + data


def test_an_entry_has_the_documented_layout() -> None:
    raw = entry_bytes(b"facts", b"packed bytes")
    head = b"rocwheel entry 1" + (5).to_bytes(4, "little") + (12).to_bytes(8, "little")
    head += hashlib.sha256(b"packed bytes").digest()
    assert raw == head + hashlib.sha256(head + KEY + b"facts").digest() + b"facts" + b"packed bytes"


@given(st.binary(max_size=50), st.binary(max_size=300))
def test_an_entry_can_be_read_back(facts: bytes, data: bytes) -> None:
    entry = parse_entry(KEY, memoryview(entry_bytes(facts, data)))
    assert entry == CacheEntry(facts, memoryview(data), hashlib.sha256(data).digest())


@given(st.binary(max_size=20), st.binary(max_size=20), st.integers(0), st.integers(0, 7))
def test_any_flipped_bit_in_an_entry_is_detected(facts: bytes, data: bytes, place: int, bit: int) -> None:
    raw = bytearray(entry_bytes(facts, data))
    raw[place % len(raw)] ^= 1 << bit
    with pytest.raises(DamagedEntryError):
        parse_entry(KEY, memoryview(raw))


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_not_an_entry(raw: bytes) -> None:
    with pytest.raises(DamagedEntryError):
        parse_entry(KEY, memoryview(raw))


@given(st.integers(0, 150), st.binary(min_size=1, max_size=3))
def test_a_truncated_or_extended_entry_is_damaged(size: int, more: bytes) -> None:
    raw = entry_bytes(b"facts", b"data" * 20)
    for changed in (raw[:size], raw + more):
        with pytest.raises(DamagedEntryError):
            parse_entry(KEY, memoryview(changed))


def test_an_entry_for_another_key_is_damaged() -> None:
    with pytest.raises(DamagedEntryError):
        parse_entry(hashlib.sha256(b"other").digest(), memoryview(entry_bytes(b"facts", b"data")))


SIZE = 92 + 100
"""Of the file of an entry with 100 bytes."""


def fill(folder: Path, count: int = 4) -> list[Path]:
    """Keep entries that were last used one second after another, and return their paths."""
    store, paths = EntryStore(folder), []
    for number in range(count):
        key = hashlib.sha256(b"%d" % number).digest()
        store.put(key, b"", bytes(100))
        paths.append(store.path_of(key))
        os.utime(paths[-1], (number, number))
    return paths


def test_the_least_recently_used_entries_are_removed_first(tmp_path: Path) -> None:
    paths = fill(tmp_path)
    assert prune_entries(tmp_path, 2 * SIZE + 5) == Pruned(
        removed=2, removed_bytes=2 * SIZE, left=2, left_bytes=2 * SIZE
    )
    assert [path.exists() for path in paths] == [False, False, True, True]


@pytest.mark.parametrize(("limit", "left"), [(4 * SIZE, 4), (4 * SIZE - 1, 3), (0, 0)])
def test_the_limit_is_exact_to_the_byte(tmp_path: Path, limit: int, left: int) -> None:
    fill(tmp_path)
    assert prune_entries(tmp_path, limit).left == left


def test_pruning_removes_the_leftovers_of_killed_writers(tmp_path: Path) -> None:
    (path,) = fill(tmp_path, 1)
    rest = path.parent / f".{path.name}.abcdefgh.rocwheel"
    rest.touch(0o600)
    prune_entries(tmp_path, 1 << 20)
    assert (path.exists(), rest.exists()) == (True, False)


def test_unrelated_files_are_neither_counted_nor_removed(tmp_path: Path) -> None:
    others = [tmp_path / "README", tmp_path / "ab" / "notes.txt", tmp_path / "zz" / ("0" * 62)]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    assert read_contents(tmp_path).entries == ()
    assert prune_entries(tmp_path, 0) == Pruned()
    assert all(path.exists() for path in others)


def test_a_missing_folder_is_treated_as_empty(tmp_path: Path) -> None:
    assert read_contents(tmp_path / "none").entries == ()
    assert prune_entries(tmp_path / "none", 0) == Pruned()
    assert verify_entries(tmp_path / "none") == VerifiedEntries()


def test_a_file_instead_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b"")
    with pytest.raises(InputError, match=r"packed: can't be read \(Not a directory\)"):
        read_contents(tmp_path / "packed")


def test_verifying_finds_and_removes_damaged_entries(tmp_path: Path) -> None:
    paths = fill(tmp_path)
    for path in (paths[1], paths[3]):
        raw = bytearray(path.read_bytes())
        raw[60] ^= 1
        path.write_bytes(raw)
    assert verify_entries(tmp_path) == VerifiedEntries(4, 4 * SIZE, (str(paths[1]), str(paths[3])))
    assert [path.exists() for path in paths] == [True, False, True, False]
    assert verify_entries(tmp_path) == VerifiedEntries(2, 2 * SIZE)


def put_instead(path: Path, what: str) -> None:
    """Put a folder, a full one, a pipe or a link in the place of an entry."""
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    if what == "full folder":
        (path / "notes.txt").touch()


@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_an_entry_that_is_not_a_file_is_damaged_and_removed(tmp_path: Path, what: str) -> None:
    paths = fill(tmp_path, 2)
    put_instead(paths[1], what)
    assert verify_entries(tmp_path) == VerifiedEntries(2, SIZE, (str(paths[1]),))
    assert not os.path.lexists(paths[1])
    put_instead(paths[1], what)
    assert prune_entries(tmp_path, 1 << 20) == Pruned(removed=1, left=1, left_bytes=SIZE)
    assert not os.path.lexists(paths[1])


def test_a_non_empty_folder_in_place_of_an_entry_is_reported_and_kept(tmp_path: Path) -> None:
    paths = fill(tmp_path, 2)
    put_instead(paths[1], "full folder")
    place = str(paths[1])
    assert verify_entries(tmp_path) == VerifiedEntries(2, SIZE, (place,), (place,))
    stuck = (Trouble(place, "Directory not empty"),)
    assert prune_entries(tmp_path, 1 << 20) == Pruned(left=2, left_bytes=SIZE, not_removed=stuck)
    assert (paths[1] / "notes.txt").exists()


def refuse(error: int) -> Callable[..., NoReturn]:
    """Return what raises an error of the system, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(error, os.strerror(error))

    return fail


def test_verifying_keeps_unreadable_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = fill(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse(errno.EMFILE))
        found = verify_entries(tmp_path)
    assert found == VerifiedEntries(1, SIZE, unreadable=(Trouble(str(path), "Too many open files"),))
    assert verify_entries(tmp_path) == VerifiedEntries(1, SIZE)


def test_verifying_reports_damaged_entries_left_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = fill(tmp_path, 1)
    path.write_bytes(bytes(SIZE))
    monkeypatch.setattr(Path, "unlink", refuse(errno.EROFS))
    assert verify_entries(tmp_path) == VerifiedEntries(1, SIZE, damaged=(str(path),), not_removed=(str(path),))


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def entry_of(facts: bytes, data: bytes) -> CacheEntry:
    return CacheEntry(facts, memoryview(data), hashlib.sha256(data).digest())


def test_an_entry_is_found_only_by_its_key(tmp_path: Path) -> None:
    store = EntryStore(tmp_path / "kept")
    store.put(key(1), b"facts", b"data")
    assert store.get(key(1)) == entry_of(b"facts", b"data")
    assert store.get(key(2)) is None
    assert (store.has(key(1)), store.has(key(2))) == (True, False)


def test_only_the_user_can_access_the_cache_folder(tmp_path: Path) -> None:
    store = EntryStore(tmp_path / "kept")
    store.put(key(1), b"", b"data")
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert store.path_of(key(1)).stat().st_mode & 0o777 == 0o600


def test_a_flipped_bit_is_reported_and_the_entry_rewritten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = EntryStore(tmp_path)
    store.put(key(1), b"facts", b"data")
    path = store.path_of(key(1))
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 4
    path.write_bytes(raw)
    assert store.get(key(1)) is None
    assert [record.getMessage() for record in caplog.records] == [f"{path}: was damaged; rocwheel will recreate it"]
    store.put(key(1), b"facts", b"data")
    assert store.get(key(1)) == entry_of(b"facts", b"data")


@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
def test_a_non_file_entry_is_reported_and_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str) -> None:
    store = EntryStore(tmp_path)
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
    assert [record.getMessage() for record in caplog.records] == [f"{path}: was damaged; rocwheel will recreate it"]


def test_a_non_empty_folder_in_place_of_an_entry_is_reported_once_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = EntryStore(tmp_path)
    path = store.path_of(key(1))
    path.mkdir(parents=True)
    (path / "notes.txt").touch()
    for number in (1, 2):
        assert store.get(key(number)) is None
        store.put(key(number), b"facts", b"data")
    assert (store.get(key(1)), store.get(key(2))) == (None, entry_of(b"facts", b"data"))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: is a folder instead of a file; rocwheel skips it"
    ]
    assert (path / "notes.txt").exists()


PUT = """
import logging, sys
from pathlib import Path
from rocwheel.core.cache import EntryStore
logging.basicConfig(format="%(message)s", stream=sys.stdout)
store = EntryStore(Path(sys.argv[1]))
for number in range(3):
    store.put(bytes([number]) * 32, b"", b"data")
    print(store.get(bytes([number]) * 32))
"""


@needs_disks
@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        pytest.param("ro", "Read-only file system", id="read-only"),
        pytest.param("size=4m", "less than 256 MiB would remain free on the disk", id="too small"),
    ],
)
def test_an_unwritable_disk_is_reported_once(tmp_path: Path, options: str, trouble: str) -> None:
    done = run_on_disk(tmp_path, options, [sys.executable, "-c", PUT, tmp_path / "kept"])
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'kept'}: can't be written ({trouble}); continuing without the cache",
        *["None"] * 3,
    ]


def test_the_cache_leaves_a_reserve_of_free_disk_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = EntryStore(tmp_path)
    disk = os.statvfs(tmp_path)
    free = (RESERVE + 3) // disk.f_frsize

    class Disk:
        f_bavail, f_frsize = free, disk.f_frsize

    monkeypatch.setattr(os, "statvfs", lambda _: Disk)
    store.put(key(1), b"", bytes(disk.f_frsize))
    store.put(key(2), b"", b"")
    assert read_contents(tmp_path).entries == ()
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: can't be written (less than 256 MiB would remain free on the disk); continuing without the cache"
    ]


def test_a_disk_that_becomes_full_during_a_write_leaves_no_partial_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writing = os.write

    def fill_up(descriptor: int, data: memoryview) -> int:
        if len(data) <= 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return writing(descriptor, data[:50])

    monkeypatch.setattr(os, "write", fill_up)
    EntryStore(tmp_path).put(key(1), b"", bytes(100))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert len(caplog.records) == 1


def test_reading_an_entry_marks_it_as_recently_used(tmp_path: Path) -> None:
    store = EntryStore(tmp_path)
    for number in (1, 2):
        store.put(key(number), b"", b"data")
        os.utime(store.path_of(key(number)), (number, number))
    store.get(key(1))
    assert [entry.key for entry in read_contents(tmp_path).entries] == [key(2), key(1)]
    assert store.path_of(key(1)).stat().st_mtime > time.time() - 60


def test_many_threads_and_stores_can_share_the_same_entries(tmp_path: Path) -> None:
    stores = [EntryStore(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(8) as executor:
        for number in range(40):
            for store in stores:
                executor.submit(store.put, key(number % 10), b"", b"%d" % (number % 10) * 1000)
    assert [bytes(entry.data) for n in range(10) if (entry := stores[0].get(key(n)))] == [
        b"%d" % number * 1000 for number in range(10)
    ]
    assert len(read_contents(tmp_path).entries) == 10


def test_a_pickled_store_keeps_its_folder(tmp_path: Path) -> None:
    EntryStore(tmp_path).put(key(1), b"", b"data")
    assert pickle.loads(pickle.dumps(EntryStore(tmp_path))).get(key(1)) == entry_of(b"", b"data")


KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from rocwheel.core.cache import EntryStore
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
EntryStore(Path(sys.argv[1])).put(b"k" * 32, b"facts", b"data" * 20)
"""


def test_a_writer_killed_at_any_step_leaves_no_damaged_entry(tmp_path: Path) -> None:
    """Each step is a write of 40 bytes, or the renaming."""
    outcomes = []
    for step in range(8):
        folder = tmp_path / str(step)
        is_killed = subprocess.run([sys.executable, "-c", KILLED, folder, str(step)], check=False).returncode == -9
        entry = EntryStore(folder).get(b"k" * 32)
        assert entry in (None, entry_of(b"facts", b"data" * 20))
        outcomes.append((is_killed, entry is not None))
        prune_entries(folder, 1 << 20)
        assert len([path for path in folder.rglob("*") if path.is_file()]) == (entry is not None)
    assert outcomes == [(True, False)] * 6 + [(False, True)] * 2


@pytest.mark.parametrize("change", ["mode", "owner"])
def test_an_entry_that_another_user_could_have_written_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    store = EntryStore(tmp_path)
    store.put(key(1), b"facts", b"data")
    path = store.path_of(key(1))
    if change == "mode":
        path.chmod(0o620)
    elif os.geteuid():
        pytest.skip("only root gives a file to another user")
    else:
        os.chown(path, 12345, -1)
    assert (store.has(key(1)), store.get(key(1))) == (False, None)
    said = f"{path}: belongs to another user, or other users can write to it; continuing without it"
    assert [record.getMessage() for record in caplog.records] == [said]
    store.put(key(1), b"facts", b"own")
    assert store.get(key(1)) == entry_of(b"facts", b"own")
