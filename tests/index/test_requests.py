"""How much publishing asks of a store, and of the disk: no more than is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import obstore.store
import pytest

from rocwheel.index.entry import read_entry
from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.stores.objects import ObjectStore
from tests.support.counted_store import CountedStore
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.index.entry import ReadEntry
    from rocwheel.stores.store import Store

COUNT = 20


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for number in range(COUNT):
        add(tmp_path / "dist", f"p{number}")
    return tmp_path / "dist"


def add(folder: Path, name: str) -> Path:
    return make_wheel(folder, name, {f"{name}.py": b""}, tag="py3-none-any", is_purelib=True)


@pytest.fixture
def store() -> Store:
    return ObjectStore(obstore.store.MemoryStore(), "memory://")


def requests(dist: Path, store: Store, options: PublishOptions | None = None) -> dict[str, int]:
    counted = CountedStore(store)
    publish(dist, cast("Store", counted), options or PublishOptions(make_front=next_front_page))
    return dict(counted.requests)


def test_each_new_file_and_page_takes_one_put_request(dist: Path, store: Store) -> None:
    # Each project has a wheel, its metadata and two pages; the index has two pages, notes and the front page.
    assert requests(dist, store) == {"put": 4 * COUNT + 4, "list": 4, "get": 1}


def test_a_run_with_nothing_new_only_lists_files_and_reads_the_index_pages(dist: Path, store: Store) -> None:
    requests(dist, store)
    assert requests(dist, store) == {"list": 3, "get": 4}


def test_one_new_file_adds_only_its_own_put_requests(dist: Path, store: Store) -> None:
    requests(dist, store)
    add(dist, "one_more")
    assert requests(dist, store) == {"list": 4, "get": 4, "put": 4 + 4}


def test_pages_are_read_once_more_without_the_notes(dist: Path, store: Store) -> None:
    requests(dist, store)
    store.delete("simple/.rocwheel-published.json")
    assert requests(dist, store) == {"list": 3, "get": 4 + 2 * COUNT, "put": 1}
    assert requests(dist, store) == {"list": 3, "get": 4}


def test_damaged_notes_are_rewritten(dist: Path, store: Store) -> None:
    requests(dist, store)
    for damaged in (b"{", b"[]", b'{"projects": {"p1": 3}}', b'{"format": 99, "projects": {}}', b"\xff"):
        store.put("simple/.rocwheel-published.json", damaged, create=False)
        assert requests(dist, store)["put"] == 1
        assert requests(dist, store) == {"list": 3, "get": 4}


def test_only_changed_files_are_read_again(
    dist: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = PublishOptions(make_front=next_front_page, cache=tmp_path / "cache")
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    requests(dist, store, options)
    changed = add(dist, "p3")

    read = []

    def noted(path: Path, advance: Callable[[int], object]) -> ReadEntry:
        read.append(path)
        return read_entry(path, advance)

    monkeypatch.setattr("rocwheel.index.folder.read_entry", noted)
    requests(dist, store, options)
    assert read == [changed]
