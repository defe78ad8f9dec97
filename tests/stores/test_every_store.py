"""What every store that can be written does: folders, memory and S3."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore.store
import pytest
from obstore.exceptions import GenericError

from rocwheel.core.reading import ChangedFileError, FileStamp
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.objects import ObjectStore
from rocwheel.stores.open import open_store
from rocwheel.stores.store import MissingFileError, OutdatedError, StoreError, TakenError
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from rocwheel.stores.store import Store


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    if request.param == "memory":
        return ObjectStore(obstore.store.MemoryStore(), "memory://")
    request.getfixturevalue("s3")
    return open_store(f"s3://{BUCKET}/some/where")


def test_stored_content_is_read_back(store: Store) -> None:
    store.put("a/b.txt", b"0123456789")
    assert store.read("a/b.txt") == b"0123456789"
    assert store.head("a/b.txt").size == 10
    assert store.head("a/b.txt").name == "a/b.txt"


def test_a_file_is_stored_from_disk(store: Store, tmp_path: Path) -> None:
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


def test_a_stream_can_begin_at_any_offset(store: Store) -> None:
    data = bytes(range(256)) * 40_000
    store.put("x", data)
    assert b"".join(store.stream("x")) == data
    assert b"".join(store.stream("x", 10_000_000)) == data[10_000_000:]


def test_streaming_a_replaced_file_is_refused(store: Store) -> None:
    store.put("x", b"A" * 1000)
    seen = store.head("x")
    assert b"".join(store.stream("x", 400, e_tag=seen.e_tag)) == b"A" * 600
    store.put("x", b"B" * 1000, create=False)
    for start in (0, 400):
        with pytest.raises(OutdatedError, match="x: was changed by another process in the meantime"):
            list(store.stream("x", start, e_tag=seen.e_tag))


def test_files_are_listed_in_name_order(store: Store) -> None:
    for name in ("b/2", "a", "b/1", "b-c"):
        store.put(name, b"x")
    assert [file.name for file in store.list()] == ["a", "b-c", "b/1", "b/2"]
    assert [file.name for file in store.list("b")] == ["b/1", "b/2"]


def test_an_existing_file_is_not_replaced(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"second")
    store.put("x", b"first")
    for content in (b"second", source):
        with pytest.raises(TakenError, match="x: already exists"):
            store.put("x", content)
    assert store.read("x") == b"first"


def test_a_file_is_replaced_on_request(store: Store) -> None:
    store.put("x", b"first")
    store.put("x", b"second", create=False)
    assert store.read("x") == b"second"


def test_swapping_requires_the_current_tag(store: Store) -> None:
    store.swap("x", b"first", None)
    first = store.load("x")
    store.swap("x", b"second", first.e_tag)
    for tag in (first.e_tag, None):
        with pytest.raises(OutdatedError, match="x: was changed by another process"):
            store.swap("x", b"third", tag)
    assert store.read("x") == b"second"


def test_swapping_a_deleted_file_is_refused(store: Store) -> None:
    store.swap("x", b"first", None)
    tag = store.load("x").e_tag
    store.delete("x")
    with pytest.raises(OutdatedError):
        store.swap("x", b"second", tag)


def test_a_missing_file_is_named_in_the_error(store: Store) -> None:
    for ask in (store.head, store.read, store.load, lambda name: store.read_range(name, 0, 1)):
        with pytest.raises(MissingFileError, match="/no/such: does not exist"):
            ask("no/such")
    with pytest.raises(MissingFileError):
        list(store.stream("no/such"))


def test_deleting_twice_is_not_an_error(store: Store) -> None:
    store.put("x", b"1")
    store.delete("x")
    store.delete("x")
    assert list(store.list()) == []


def test_a_recorded_hash_is_known_if_the_store_supports_it(store: Store) -> None:
    digest = hashlib.sha256(b"1").hexdigest()
    store.put("x", b"1", sha256=digest)
    assert store.head("x").sha256 == ("" if isinstance(store, FolderStore) else digest)


def test_a_file_modified_since_it_was_read_is_not_stored(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"read")
    stamp = FileStamp.at(source)
    source.write_bytes(b"else")
    with pytest.raises(ChangedFileError, match="source: changed while it was being read"):
        store.put("x", source, sha256=hashlib.sha256(b"read").hexdigest(), stamp=stamp)
    with pytest.raises(MissingFileError):
        store.head("x")


def test_a_large_file_modified_since_it_was_read_is_not_stored(store: Store, large: tuple[Path, str]) -> None:
    path, digest = large
    stamp = FileStamp.at(path)
    with path.open("r+b") as file:
        file.write(b"else")
    with pytest.raises(ChangedFileError, match=r"large\.whl: changed while it was being read"):
        store.put("x", path, sha256=digest, stamp=stamp)
    with pytest.raises(MissingFileError):
        store.head("x")


def test_a_file_that_changes_during_the_upload_never_gets_its_final_name(
    tmp_path: Path, large: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = obstore.store.MemoryStore()
    put, small = obstore.put, tmp_path / "small"
    small.write_bytes(b"read")
    sent = set()

    def put_and_write(to: Any, name: str, source: Any, **options: Any) -> Any:
        sent.add(name.partition("/")[0])
        if not isinstance(source, bytes):
            Path(source.name).write_bytes(b"else")
        return put(to, name, source, **options)

    monkeypatch.setattr(obstore, "put", put_and_write)
    with pytest.raises(ChangedFileError):
        ObjectStore(inner, "memory://").put("x", large[0], sha256=large[1])
    ObjectStore(inner, "memory://").put("y", small)
    assert [(str(meta["path"]), meta["size"]) for meta in obstore.list(inner).collect()] == [("y", 4)]
    # A store is first asked whether it keeps conditions.
    assert {name for name in sent if not name.startswith(".rocwheel-conditions-")} == {".rocwheel-uploads", "y"}
    assert small.read_bytes() == b"read"  # of what is sent at once, all was read before


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, str]:
    """Return a file that is sent in parts, and its hash."""
    path = tmp_path / "large.whl"
    data = bytes(range(256)) * (34 << 12)
    path.write_bytes(data)
    return path, hashlib.sha256(data).hexdigest()


def test_the_upload_of_a_large_file_is_reported_piece_by_piece(store: Store, large: tuple[Path, str]) -> None:
    sent: list[int] = []
    store.put("dist/x.whl", large[0], sha256=large[1], advance=sent.append)
    assert len([size for size in sent if size]) > 4
    assert sum(sent) == large[0].stat().st_size


def test_the_hash_of_a_large_file_is_recorded_beside_it(store: Store, large: tuple[Path, str]) -> None:
    path, digest = large
    store.put("dist/x.whl", path, sha256=digest)
    assert store.head("dist/x.whl").sha256 == ("" if isinstance(store, FolderStore) else digest)
    assert [file.name for file in store.list()] == ["dist/x.whl"]


def test_the_recorded_hash_is_not_used_for_other_bytes(store: Store, large: tuple[Path, str]) -> None:
    path, digest = large
    store.put("x.whl", path, sha256=digest)
    store.put("x.whl", bytes(path.stat().st_size), create=False)
    assert store.head("x.whl").sha256 == ""


def test_deleting_a_large_file_deletes_its_recorded_hash(large: tuple[Path, str]) -> None:
    inner = obstore.store.MemoryStore()
    store = ObjectStore(inner, "memory://")
    store.put("dist/x.whl", large[0], sha256=large[1])
    assert len(obstore.list(inner).collect()) == 2
    store.delete("dist/x.whl")
    assert obstore.list(inner).collect() == []


def test_parts_left_by_a_killed_upload_are_removed_by_the_next_upload_of_the_same_bytes(
    large: tuple[Path, str],
) -> None:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    for name in (large[1], f"{large[1]}.begun", f"{large[1]}.0123.begun", f"{'0' * 64}.begun"):
        store.put(f".rocwheel-uploads/{name}", b"")
    store.put("x.whl", large[0], sha256=large[1])
    assert [file.name for file in store.list()] == [f".rocwheel-uploads/{'0' * 64}.begun", "x.whl"]


def test_a_failing_publisher_removes_no_parts_of_another_publisher(
    large: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    path, digest = large
    copy = obstore.copy
    failing = True

    def copy_with_another(*words: Any, **options: Any) -> None:
        nonlocal failing
        if failing:  # the other's copy is refused while this one's part is whole
            failing = False
            monkeypatch.setattr(obstore, "copy", _refused)
            with pytest.raises(StoreError):
                store.put("x.whl", path, sha256=digest)
        copy(*words, **options)

    monkeypatch.setattr(obstore, "copy", copy_with_another)
    store.put("x.whl", path, sha256=digest)
    assert store.head("x.whl").size == path.stat().st_size


def _refused(*_: Any, **__: Any) -> None:
    message = "refused"
    raise GenericError(message)


def test_a_file_too_large_to_be_renamed_is_refused_before_the_upload(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    with path.open("wb") as file:
        file.truncate((5 << 30) + 1)
    inner = obstore.store.MemoryStore()
    with pytest.raises(StoreError, match=r"x\.whl: can't be stored with 5368709121 bytes .* expected at most 5 GiB"):
        ObjectStore(inner, "memory://").put("x.whl", path)
    assert obstore.list(inner).collect() == []
