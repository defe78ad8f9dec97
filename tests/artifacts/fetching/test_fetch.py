"""Tests of the transfer of archives from a store."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.artifacts.fetching.choose import find_archives
from rocwheel.artifacts.fetching.fetch import FetchedArchive, fetch_files, read_checksums
from rocwheel.core.errors import ProblemsError, RocwheelError
from rocwheel.stores.open import open_store
from rocwheel.stores.store import BrokenTransferError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("a_lib_generic.tar.zst", "b_lib_gfx942.tar.zst")


def data_of(name: str) -> bytes:
    return name.encode() * 500_000


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return a folder that a store is opened on, with two archives and their checksums."""
    folder = tmp_path / "there"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(data_of(name))
        (folder / f"{name}.sha256sum").write_text(f"{hashlib.sha256(data_of(name)).hexdigest()}  {name}\n")
    return folder


class Failing:
    """A store that ends transfers of one file after some bytes, and notes from where streams begin."""

    def __init__(self, folder: Path, name: str = "", after: int = 0) -> None:
        self._store: Any = open_store(folder)
        self._name, self._after = name, after
        self.starts: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:  # noqa: D102
        if not name.endswith("sum"):
            self.starts.append((name, start))
        sent = 0
        for block in self._store.stream(name, start, e_tag=e_tag):
            sent += len(block)
            yield block
            if name == self._name and sent >= self._after:
                raise BrokenTransferError(self._store.place(name), "the transfer ended early")


def fetch(store: Any, dest: Path) -> tuple[FetchedArchive, ...]:
    files = tuple(store.list())
    archives = find_archives(files, store.url)
    stored = [archive.stored for archive in archives]
    return fetch_files(store, stored, dest, read_checksums(store, files, stored))


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_archives_are_compared_with_their_checksums(there: Path, tmp_path: Path) -> None:
    found = fetch(open_store(there), tmp_path / "here")
    assert [(one.name, one.bytes, one.verified, one.is_new) for one in found] == [
        (name, len(data_of(name)), "sha256", True) for name in NAMES
    ]
    assert sorted(os.listdir(tmp_path / "here")) == list(NAMES)  # noqa: PTH208
    assert all((tmp_path / "here" / name).read_bytes() == data_of(name) for name in NAMES)


def test_what_is_there_is_not_fetched_again(there: Path, tmp_path: Path) -> None:
    fetch(open_store(there), tmp_path / "here")
    store = Failing(there)
    assert [one.is_new for one in fetch(store, tmp_path / "here")] == [False, False]
    assert store.starts == []


@pytest.mark.parametrize("has_checksum", [True, False], ids=["checksum", "date"])
def test_what_has_changed_in_the_store_is_fetched_again(there: Path, tmp_path: Path, *, has_checksum: bool) -> None:
    if not has_checksum:
        (there / f"{NAMES[0]}.sha256sum").unlink()
    fetch(open_store(there), tmp_path / "here")
    new = bytes(len(data_of(NAMES[0])))
    (there / NAMES[0]).write_bytes(new)
    os.utime(there / NAMES[0], (1_900_000_000, 1_900_000_000))
    if has_checksum:
        (there / f"{NAMES[0]}.sha256sum").write_text(hashlib.sha256(new).hexdigest())
    assert [one.is_new for one in fetch(open_store(there), tmp_path / "here")] == [True, False]
    assert (tmp_path / "here" / NAMES[0]).read_bytes() == new


def test_without_a_checksum_the_size_alone_is_compared_and_that_is_said(there: Path, tmp_path: Path) -> None:
    for name in NAMES:
        (there / f"{name}.sha256sum").unlink()
    assert {one.verified for one in fetch(open_store(there), tmp_path / "here")} == {"size"}


def test_a_list_of_all_checksums_serves_as_well(there: Path, tmp_path: Path) -> None:
    lines = [f"{hashlib.sha256(data_of(name)).hexdigest()}  {name}\n" for name in NAMES]
    for name in NAMES:
        (there / f"{name}.sha256sum").unlink()
    (there / "SHA256SUMS").write_text("".join(lines))
    assert {one.verified for one in fetch(open_store(there), tmp_path / "here")} == {"sha256"}


@pytest.mark.parametrize("is_beside", [False, True], ids=["of all", "of each folder"])
def test_files_of_one_name_in_several_folders_have_their_own_checksums(tmp_path: Path, *, is_beside: bool) -> None:
    digests = {}
    for family in ("gfx94X-dcgpu", "gfx103X-dgpu"):
        (tmp_path / family).mkdir()
        (tmp_path / family / "rocm-1.0.tar.gz").write_bytes(family.encode())
        digests[f"{family}/rocm-1.0.tar.gz"] = hashlib.sha256(family.encode()).hexdigest()
    for name, digest in digests.items():
        folder, _, base = name.partition("/")
        with (tmp_path / (folder if is_beside else "") / "SHA256SUMS").open("a") as file:
            file.write(f"{digest}  {base if is_beside else name}\n")
    store = open_store(tmp_path)
    files = tuple(store.list())
    assert read_checksums(store, files, [one for one in files if one.name in digests]) == digests


def test_a_checksum_beside_a_file_in_a_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f/x").write_bytes(b"x")
    (tmp_path / "f/x.sha256sum").write_text(f"{'a' * 64}  x\n")
    store = open_store(tmp_path)
    assert read_checksums(store, tuple(store.list()), [store.head("f/x")]) == {"f/x": "a" * 64}


def test_a_transfer_that_ends_is_taken_up_and_the_others_arrive(there: Path, tmp_path: Path) -> None:
    store = Failing(there, NAMES[0], 1 << 20)
    with pytest.raises(RocwheelError, match=f"{NAMES[0]}: the transfer ended early"):
        fetch(store, tmp_path / "here")
    assert visible(tmp_path / "here") == [NAMES[1]]
    again = Failing(there)
    fetch(again, tmp_path / "here")
    ((name, start),) = again.starts
    assert (name, start >= 1 << 20) == (NAMES[0], True)
    assert (tmp_path / "here" / NAMES[0]).read_bytes() == data_of(NAMES[0])


def test_wrong_checksums_are_reported_together_and_nothing_appears(there: Path, tmp_path: Path) -> None:
    for name in NAMES:
        (there / f"{name}.sha256sum").write_text("0" * 64)
    with pytest.raises(ProblemsError) as caught:
        fetch(open_store(there), tmp_path / "here")
    assert [name in str(problem) for name, problem in zip(NAMES, caught.value.problems, strict=True)] == [True, True]
    assert sorted(os.listdir(tmp_path / "here")) == []  # noqa: PTH208


def test_checksums_that_contradict_each_other_are_an_error(there: Path, tmp_path: Path) -> None:
    (there / "SHA256SUMS").write_text(f"{'0' * 64}  {NAMES[0]}\n")
    with pytest.raises(RocwheelError, match=re.escape(f"{NAMES[0]}: has several checksums in the store")):
        fetch(open_store(there), tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_a_file_of_checksums_for_another_file_is_an_error(there: Path, tmp_path: Path) -> None:
    (there / f"{NAMES[0]}.sha256sum").write_text(f"{'0' * 64}  other.tar.zst\n")
    with pytest.raises(RocwheelError, match=f"has no checksum of {NAMES[0]}"):
        fetch(open_store(there), tmp_path / "here")
