"""Tests of `rocwheel.index.store_pages`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import obstore.store
import pytest

from rocwheel.core.errors import InputError
from rocwheel.index.front_content import front_page, next_front_page
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.stores.objects import ObjectStore
from tests.support.raced_store import RacedStore
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import LoadedFile, Store


OPTIONS = PublishOptions(make_front=next_front_page)
PAGE = "simple/packages.html"


@pytest.fixture
def store() -> Store:
    return ObjectStore(obstore.store.MemoryStore(), "memory://")


def add(folder: Path, name: str, version: str = "1.0") -> Path:
    files: dict[str, Path | bytes] = {
        f"{name}.py": b"",
        f"{name}-{version}.dist-info/rocm_targets.json": b'{"rocm_targets": ["gfx1100"]}',
    }
    return make_wheel(folder, name, files, version=version, tag="py3-none-any", is_purelib=True).parent


def shown(store: Store) -> dict[str, bool]:
    page = store.read(PAGE)
    return {name: f">{name}<".encode() in page for name in ("alpha", "beta")}


def test_the_front_page_shows_published_projects_and_their_gpus(tmp_path: Path, store: Store) -> None:
    publish(add(tmp_path / "dist", "alpha"), store, OPTIONS)
    assert shown(store) == {"alpha": True, "beta": False}
    assert b"gfx1100" in store.read(PAGE)
    assert b'action="packages.html"' in store.read("simple/index.html")


def test_projects_of_other_publishers_stay_on_the_front_page_with_their_gpus(tmp_path: Path, store: Store) -> None:
    publish(add(tmp_path / "one", "alpha"), store, OPTIONS)
    before = store.read(PAGE)
    publish(make_wheel(tmp_path / "two", "beta", {}, tag="py3-none-any", is_purelib=True).parent, store, OPTIONS)
    assert shown(store) == {"alpha": True, "beta": True}
    assert store.read(PAGE).count(b"gfx1100") >= before.count(b"gfx1100") > 0


def test_the_front_page_shows_all_projects_even_without_the_notes(tmp_path: Path, store: Store) -> None:
    publish(add(tmp_path / "one", "alpha"), store, OPTIONS)
    store.delete("simple/.rocwheel-published.json")
    publish(add(tmp_path / "two", "beta"), store, OPTIONS)
    assert shown(store) == {"alpha": True, "beta": True}


def test_a_project_whose_pages_were_removed_is_removed_from_the_front_page(tmp_path: Path, store: Store) -> None:
    publish(add(tmp_path / "one", "alpha"), store, OPTIONS)
    for form in ("html", "json"):
        store.delete(f"simple/alpha/index.{form}")
    publish(add(tmp_path / "two", "beta"), store, OPTIONS)
    assert shown(store) == {"alpha": False, "beta": True}


def test_the_url_on_the_front_page_is_kept_until_another_is_given(tmp_path: Path, store: Store) -> None:
    url = "https://example.org/rocm/simple/"
    publish(add(tmp_path / "one", "alpha"), store, PublishOptions(make_front=lambda _: front_page(url)))
    publish(add(tmp_path / "two", "beta"), store, OPTIONS)
    assert url.encode() in store.read(PAGE)


def test_a_front_page_that_rocwheel_did_not_write_is_reported_and_kept(tmp_path: Path, store: Store) -> None:
    store.put(PAGE, b"<html>mine</html>")
    with pytest.raises(InputError, match=r"packages\.html: is a page that this command did not write"):
        publish(add(tmp_path / "one", "alpha"), store, OPTIONS)
    assert [file.name for file in store.list()] == [PAGE]


FILES = [f"simple/{name}" for name in ("alpha/index.json", "alpha/index.html", "index.json", "index.html")] + [
    "simple/.rocwheel-published.json",
    PAGE,
]


@pytest.mark.parametrize("name", FILES)
def test_two_concurrent_publishers_are_both_on_the_front_page(tmp_path: Path, store: Store, name: str) -> None:
    add(tmp_path / "two", "alpha", "2.0")
    raced = RacedStore(store, name, partial(publish, add(tmp_path / "two", "beta"), options=OPTIONS))
    publish(add(tmp_path / "one", "alpha"), cast("Store", raced), OPTIONS)
    assert shown(store) == {"alpha": True, "beta": True}
    page = store.read(PAGE)
    assert (b"1.0" in page, b"2.0" in page) == (True, True)
    publish(tmp_path / "one", store, OPTIONS)
    publish(tmp_path / "two", store, OPTIONS)
    assert store.read(PAGE) == page


@pytest.mark.parametrize("has_news", [False, True])
def test_a_project_published_between_reading_the_notes_and_the_page_is_kept(
    tmp_path: Path, store: Store, has_news: bool
) -> None:
    class RacedRead:
        done = False

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def load(self, name: str) -> LoadedFile:
            if name == PAGE and not self.done:
                self.done = True
                publish(add(tmp_path / "two", "beta"), store, OPTIONS)
            return store.load(name)

    publish(add(tmp_path / "one", "alpha"), store, OPTIONS)
    if has_news:
        add(tmp_path / "one", "alpha", "2.0")
    publish(tmp_path / "one", cast("Store", RacedRead()), OPTIONS)
    assert shown(store) == {"alpha": True, "beta": True}
