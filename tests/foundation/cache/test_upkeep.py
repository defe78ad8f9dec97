"""Listing, pruning and verifying a folder of entries, with whatever else is in it."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from rocwheel.foundation.cache.store import Store
from rocwheel.foundation.cache.upkeep import NotRemoved, Pruned, Unreadable, Verified, prune, read_contents, verify
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 92 + 100
"""Of the file of an entry with 100 bytes."""


def fill(folder: Path, count: int = 4) -> list[Path]:
    """Keep entries that were last used one second after another, and return their paths."""
    store, paths = Store(folder), []
    for number in range(count):
        key = hashlib.sha256(b"%d" % number).digest()
        store.put(key, b"", bytes(100))
        paths.append(store.path_of(key))
        os.utime(paths[-1], (number, number))
    return paths


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    paths = fill(tmp_path)
    assert prune(tmp_path, 2 * SIZE + 5) == Pruned(removed=2, removed_bytes=2 * SIZE, left=2, left_bytes=2 * SIZE)
    assert [path.exists() for path in paths] == [False, False, True, True]


@pytest.mark.parametrize(("limit", "left"), [(4 * SIZE, 4), (4 * SIZE - 1, 3), (0, 0)])
def test_a_limit_is_kept_to_the_byte(tmp_path: Path, limit: int, left: int) -> None:
    fill(tmp_path)
    assert prune(tmp_path, limit).left == left


def test_pruning_removes_what_killed_writers_left(tmp_path: Path) -> None:
    (path,) = fill(tmp_path, 1)
    rest = path.parent / f".{path.name}.abcdefgh.rocwheel"
    rest.touch(0o600)
    prune(tmp_path, 1 << 20)
    assert (path.exists(), rest.exists()) == (True, False)


def test_files_of_others_are_neither_counted_nor_removed(tmp_path: Path) -> None:
    others = [tmp_path / "README", tmp_path / "ab" / "notes.txt", tmp_path / "zz" / ("0" * 62)]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    assert read_contents(tmp_path).entries == ()
    assert prune(tmp_path, 0) == Pruned()
    assert all(path.exists() for path in others)


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_contents(tmp_path / "none").entries == ()
    assert prune(tmp_path / "none", 0) == Pruned()
    assert verify(tmp_path / "none") == Verified()


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b"")
    with pytest.raises(InputError, match=r"packed: can't be read \(Not a directory\)"):
        read_contents(tmp_path / "packed")


def test_verifying_finds_and_removes_what_is_damaged(tmp_path: Path) -> None:
    paths = fill(tmp_path)
    for path in (paths[1], paths[3]):
        raw = bytearray(path.read_bytes())
        raw[60] ^= 1
        path.write_bytes(raw)
    assert verify(tmp_path) == Verified(4, 4 * SIZE, (str(paths[1]), str(paths[3])))
    assert [path.exists() for path in paths] == [True, False, True, False]
    assert verify(tmp_path) == Verified(2, 2 * SIZE)


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
def test_what_is_no_file_is_damaged_and_goes(tmp_path: Path, what: str) -> None:
    paths = fill(tmp_path, 2)
    put_instead(paths[1], what)
    assert verify(tmp_path) == Verified(2, SIZE, (str(paths[1]),))
    assert not os.path.lexists(paths[1])
    put_instead(paths[1], what)
    assert prune(tmp_path, 1 << 20) == Pruned(removed=1, left=1, left_bytes=SIZE)
    assert not os.path.lexists(paths[1])


def test_a_folder_with_files_in_the_place_of_an_entry_is_told_and_stays(tmp_path: Path) -> None:
    paths = fill(tmp_path, 2)
    put_instead(paths[1], "full folder")
    place = str(paths[1])
    assert verify(tmp_path) == Verified(2, SIZE, (place,), (place,))
    stuck = (NotRemoved(place, "Directory not empty"),)
    assert prune(tmp_path, 1 << 20) == Pruned(left=2, left_bytes=SIZE, not_removed=stuck)
    assert (paths[1] / "notes.txt").exists()


def refuse(error: int) -> Callable[..., NoReturn]:
    """Return what raises an error of the system, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(error, os.strerror(error))

    return fail


def test_verifying_keeps_what_it_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = fill(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse(errno.EMFILE))
        found = verify(tmp_path)
    assert found == Verified(1, SIZE, unreadable=(Unreadable(str(path), "Too many open files"),))
    assert verify(tmp_path) == Verified(1, SIZE)


def test_verifying_tells_what_is_damaged_and_still_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = fill(tmp_path, 1)
    path.write_bytes(bytes(SIZE))
    monkeypatch.setattr(Path, "unlink", refuse(errno.EROFS))
    assert verify(tmp_path) == Verified(1, SIZE, damaged=(str(path),), not_removed=(str(path),))
