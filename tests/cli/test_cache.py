"""``rocwheel cache``: what is in the cache, what leaves it, and what is damaged there."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.cache import EntryStore
from tests.support.command_line import as_user, needs_setpriv
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run

SIZE = 92 + 10_000


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return three entries of a cache, the least recently used first."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path))
    store, paths = EntryStore(tmp_path / "packed"), []
    for number in range(3):
        key = hashlib.sha256(b"%d" % number).digest()
        store.put(key, b"", bytes(10_000))
        os.utime(store.path_of(key), (86400 * number, 86400 * number))
        paths.append(store.path_of(key))
    return paths


def test_info_prints_the_cache_folder_and_its_size(run: Run, tmp_path: Path, paths: list[Path]) -> None:
    assert run("cache", "info").stdout.splitlines() == [
        str(tmp_path / "packed"),
        "3 entries, 30.3 kB of at most 10.0 GB",
        "used between 1970-01-01T00:00:00Z and 1970-01-03T00:00:00Z",
    ]


def test_info_prints_json(run: Run, tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_LIMIT", "1MiB")
    assert json.loads(run("cache", "info", "--json").stdout) == {
        "schema": "rocwheel.cache-info/1",
        "folder": str(tmp_path / "packed"),
        "entries": 3,
        "bytes": 3 * SIZE,
        "limit": 1 << 20,
        "oldest_use": "1970-01-01T00:00:00Z",
        "newest_use": "1970-01-03T00:00:00Z",
        "fetched_folder": str(tmp_path / "fetched"),
        "fetched": 0,
        "fetched_bytes": 0,
        "published_folder": str(tmp_path / "published"),
        "published": 0,
        "published_bytes": 0,
        "unreadable": [],
    }


def test_an_empty_cache_has_no_last_use(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path))
    assert run("cache", "info").stdout == f"{tmp_path}/packed\n0 entries, 0 bytes of at most 10.0 GB\n"
    assert json.loads(run("cache", "info", "--json").stdout)["oldest_use"] is None
    assert run("cache", "prune").stdout == "removed 0 entries (0 bytes); left: 0 (0 bytes)\n"
    assert run("cache", "info", "--verify").stdout == "0 entries (0 bytes), 0 damaged\n"


def test_prune_removes_the_least_recently_used_entries(run: Run, tmp_path: Path, paths: list[Path]) -> None:
    assert run("cache", "prune", "--max-size", "20.2kB").stdout == "removed 1 entry (10.1 kB); left: 2 (20.2 kB)\n"
    assert [path.exists() for path in paths] == [False, True, True]
    assert json.loads(run("cache", "prune", "--max-size=0", "--json").stdout) == {
        "schema": "rocwheel.cache-prune/1",
        "folder": str(tmp_path / "packed"),
        "removed": 2,
        "removed_bytes": 2 * SIZE,
        "left": 0,
        "left_bytes": 0,
        "not_removed": [],
        "unreadable": [],
        "fetched_removed": 0,
        "fetched_removed_bytes": 0,
        "fetched_left": 0,
        "fetched_left_bytes": 0,
        "published_removed": 0,
        "published_removed_bytes": 0,
        "published_left": 0,
        "published_left_bytes": 0,
    }


def test_prune_uses_the_limit_in_the_environment(run: Run, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_LIMIT", "11 kB")
    assert run("cache", "prune").stdout == "removed 2 entries (20.2 kB); left: 1 (10.1 kB)\n"


@pytest.mark.parametrize("size", ["", "-1", "much"])
def test_prune_refuses_an_invalid_size(run: Run, paths: list[Path], size: str) -> None:
    done = run("cache", "prune", f"--max-size={size}")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == f"error: --max-size: is {size!r}; expected a size, such as 20GB or 500MiB\n"
    assert all(path.exists() for path in paths)


def test_verify_names_and_removes_damaged_entries(run: Run, tmp_path: Path, paths: list[Path]) -> None:
    raw = bytearray(paths[1].read_bytes())
    raw[500] ^= 1
    paths[1].write_bytes(raw)
    done = run("cache", "info", "--verify")
    assert done.status == 1
    assert done.stdout == f"{paths[1]}: was damaged and was removed\n3 entries (30.3 kB), 1 damaged\n"
    assert json.loads(run("cache", "info", "--verify", "--json").stdout) == {
        "schema": "rocwheel.cache-verify/1",
        "folder": str(tmp_path / "packed"),
        "entries": 2,
        "bytes": 2 * SIZE,
        "damaged": [],
        "not_removed": [],
        "unreadable": [],
    }


def test_verify_reports_entries_it_could_not_read_or_remove(
    run: Run, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, unread = Path.read_bytes, paths[0]

    def read_some(path: Path) -> bytes:
        if path == unread:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path)

    def stay(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    paths[1].write_bytes(bytes(SIZE))
    monkeypatch.setattr(Path, "read_bytes", read_some)
    monkeypatch.setattr(Path, "unlink", stay)
    done = run("cache", "info", "--verify")
    assert done.status == 1
    assert done.stdout.splitlines() == [
        f"{paths[1]}: is damaged and can't be removed",
        f"{paths[0]}: can't be read (Input/output error), so it was kept",
        "3 entries (30.3 kB), 1 damaged, 1 unreadable",
    ]


def cache_as_user(*words: str) -> tuple[int, list[str], list[str]]:
    """Run a command about the cache, for which permissions count; return its status and lines."""
    command = [*as_user(), sys.executable, "-m", "rocwheel", "cache", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.slow
@needs_setpriv
def test_an_unreadable_folder_is_reported_and_the_others_are_still_processed(tmp_path: Path, paths: list[Path]) -> None:
    closed = paths[0].parent
    closed.chmod(0)
    assert cache_as_user("info") == (
        0,
        [
            str(tmp_path / "packed"),
            "2 entries, 20.2 kB of at most 10.0 GB",
            "used between 1970-01-02T00:00:00Z and 1970-01-03T00:00:00Z",
            f"{closed}: can't be read (Permission denied), so it isn't counted",
        ],
        [],
    )
    assert cache_as_user("info", "--verify") == (
        1,
        [
            f"{closed}: can't be read (Permission denied), so it was kept",
            "2 entries (20.2 kB), 0 damaged, 1 unreadable",
        ],
        [],
    )
    assert cache_as_user("prune", "--max-size=0") == (
        1,
        ["removed 2 entries (20.2 kB); left: 0 (0 bytes)"],
        [f"error: {closed}: can't be read (Permission denied). Check the permissions."],
    )


@pytest.mark.slow
@needs_setpriv
def test_prune_reports_why_entries_were_not_removed(tmp_path: Path, paths: list[Path]) -> None:
    for path in paths:
        path.parent.chmod(0o500)
    assert cache_as_user("prune", "--max-size=11kB") == (
        1,
        ["removed 0 entries (0 bytes); left: 3 (30.3 kB)"],
        [
            (
                f"error: {tmp_path}/packed: 3 entries can't be removed (Permission denied), such as {paths[0]}. "
                "Check the contents and permissions, and whether the disk is writable."
            )
        ],
    )
    status, lines, _ = cache_as_user("prune", "--max-size=11kB", "--json")
    assert (status, json.loads("".join(lines))["not_removed"]) == (
        1,
        [{"path": str(path), "reason": "Permission denied"} for path in paths],
    )


@pytest.mark.parametrize("command", [("info",), ("prune",), ("info", "--verify")], ids=" ".join)
def test_a_file_at_the_cache_path_is_an_error(
    run: Run, tmp_path: Path, paths: list[Path], command: tuple[str, ...]
) -> None:
    place = tmp_path / "file"
    place.mkdir()
    (place / "packed").write_bytes(b"mine")
    os.environ["ROCWHEEL_CACHE_DIR"] = str(place)
    done = run("cache", *command)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {place}/packed: can't be read (Not a directory). Pass a folder instead of a file.\n"
    )
    assert (place / "packed").read_bytes() == b"mine"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return three folders that commands have fetched, the least recently used first."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path))
    folders = [tmp_path / "fetched" / name for name in ("c", "a", "b")]
    for day, folder in enumerate(folders):
        (folder / "dist").mkdir(parents=True)
        (folder / "dist" / "x.whl").write_bytes(bytes(1000))
        os.utime(folder, (86400 * day, 86400 * day))
    return folders


def test_info_includes_folders_fetched_from_urls(run: Run, tmp_path: Path, fetched: list[Path]) -> None:
    assert run("cache", "info").stdout.splitlines()[-2:] == [
        str(tmp_path / "fetched"),
        "3 folders fetched from URLs, 3.0 kB",
    ]
    found = json.loads(run("cache", "info", "--json").stdout)
    assert (found["fetched_folder"], found["fetched"], found["fetched_bytes"]) == (str(tmp_path / "fetched"), 3, 3000)


def test_prune_removes_the_least_recently_used_fetched_folders(run: Run, fetched: list[Path]) -> None:
    done = run("cache", "prune", "--max-size", "2kB")
    assert done.stdout.splitlines()[-1] == "removed 1 fetched folder (1.0 kB); left: 2 (2.0 kB)"
    assert [folder.exists() for folder in fetched] == [False, True, True]
    document = json.loads(run("cache", "prune", "--max-size", "0", "--json").stdout)
    assert {name: value for name, value in document.items() if name.startswith("fetched")} == {
        "fetched_removed": 2,
        "fetched_removed_bytes": 2000,
        "fetched_left": 0,
        "fetched_left_bytes": 0,
    }
    assert not any(folder.exists() for folder in fetched)


def test_prune_keeps_a_fetched_folder_that_is_in_use(run: Run, fetched: list[Path]) -> None:
    descriptor = os.open(fetched[0], os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert run("cache", "prune", "--max-size", "0").status == 0
        assert [(folder / "dist" / "x.whl").exists() for folder in fetched] == [True, False, False]
    finally:
        os.close(descriptor)


def test_publishing_records_are_counted_and_pruned(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("a", "b"):
        make_wheel(tmp_path / name, "alpha", {"alpha.py": b""}, tag="py3-none-any", is_purelib=True)
        assert run("publish", tmp_path / name, tmp_path / "store" / name).status == 0
    notes = sorted((tmp_path / "cache" / "published").iterdir(), key=lambda folder: folder.stat().st_mtime)
    found = json.loads(run("cache", "info", "--json").stdout)
    size = sum(path.stat().st_size for folder in notes for path in folder.iterdir())
    assert (found["published_folder"], found["published"]) == (str(tmp_path / "cache" / "published"), 2)
    assert found["published_bytes"] == size
    assert run("cache", "info").stdout.splitlines()[-1].startswith("notes for 2 published folders, ")
    pruned = run("cache", "prune", "--max-size", str(size - 1)).stdout.splitlines()[-1]
    assert pruned.startswith("removed 1 folder of publishing notes (")
    assert [folder.exists() for folder in notes] == [False, True]
    document = json.loads(run("cache", "prune", "--max-size", "0", "--json").stdout)
    assert (document["published_removed"], document["published_left"]) == (1, 0)
