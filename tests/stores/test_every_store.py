"""What every store that can be written does: folders, memory and S3."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import obstore.store
import pytest

from rocwheel.stores.errors import MissingFileError, OutdatedError, TakenError
from rocwheel.stores.folder_store import FolderStore
from rocwheel.stores.object_store import ObjectStore
from rocwheel.stores.open_store import open_store
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import Store


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    if request.param == "memory":
        return ObjectStore(obstore.store.MemoryStore(), "memory://")
    request.getfixturevalue("s3")
    return open_store(f"s3://{BUCKET}/some/where")


def test_what_was_put_is_read_back(store: Store) -> None:
    store.put("a/b.txt", b"0123456789")
    assert store.read("a/b.txt") == b"0123456789"
    assert store.head("a/b.txt").size == 10
    assert store.head("a/b.txt").name == "a/b.txt"


def test_a_file_is_put_from_disk(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"content")
    store.put("x", source)
    assert store.read("x") == b"content"


def test_ranges_are_read(store: Store) -> None:
    store.put("x", b"0123456789")
    assert [store.read_range("x", 2, 5), store.read_range("x", 8, 20), store.read_range("x", 3, 3)] == [
        b"234",
        b"89",
        b"",
    ]


def test_a_stream_begins_anywhere(store: Store) -> None:
    data = bytes(range(256)) * 40_000
    store.put("x", data)
    assert b"".join(store.stream("x")) == data
    assert b"".join(store.stream("x", 10_000_000)) == data[10_000_000:]


def test_files_are_listed_by_name(store: Store) -> None:
    for name in ("b/2", "a", "b/1", "b-c"):
        store.put(name, b"x")
    assert [file.name for file in store.list()] == ["a", "b-c", "b/1", "b/2"]
    assert [file.name for file in store.list("b")] == ["b/1", "b/2"]


def test_an_existing_file_is_not_replaced(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"second")
    store.put("x", b"first")
    for content in (b"second", source):
        with pytest.raises(TakenError, match="x: is there already"):
            store.put("x", content)
    assert store.read("x") == b"first"


def test_a_file_is_replaced_where_that_is_asked_for(store: Store) -> None:
    store.put("x", b"first")
    store.put("x", b"second", create=False)
    assert store.read("x") == b"second"


def test_swapping_needs_the_tag_of_what_is_there(store: Store) -> None:
    store.swap("x", b"first", None)
    first = store.load("x")
    store.swap("x", b"second", first.e_tag)
    for tag in (first.e_tag, None):
        with pytest.raises(OutdatedError, match="x: was changed meanwhile"):
            store.swap("x", b"third", tag)
    assert store.read("x") == b"second"


def test_swapping_what_is_gone_is_refused(store: Store) -> None:
    store.swap("x", b"first", None)
    tag = store.load("x").e_tag
    store.delete("x")
    with pytest.raises(OutdatedError):
        store.swap("x", b"second", tag)


def test_what_is_not_there_is_named(store: Store) -> None:
    for ask in (store.head, store.read, store.load, lambda name: store.read_range(name, 0, 1)):
        with pytest.raises(MissingFileError, match="/no/such: is not there"):
            ask("no/such")
    with pytest.raises(MissingFileError):
        list(store.stream("no/such"))


def test_deleting_twice_is_no_error(store: Store) -> None:
    store.put("x", b"1")
    store.delete("x")
    store.delete("x")
    assert list(store.list()) == []


def test_a_noted_hash_is_known_where_the_store_can_note_it(store: Store) -> None:
    digest = hashlib.sha256(b"1").hexdigest()
    store.put("x", b"1", sha256=digest)
    assert store.head("x").sha256 == ("" if isinstance(store, FolderStore) else digest)
