"""Tests of `rocwheel.index.publish`."""

from __future__ import annotations

import json
from functools import partial
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, cast

import obstore.store
import pytest

from rocwheel.core.errors import InputError
from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishOptions, change_published_marks, publish
from rocwheel.index.uploads import Layout
from rocwheel.index.yanked import Yanking
from rocwheel.stores.objects import ObjectStore
from tests.support.raced_store import RacedStore
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.stores.store import LoadedFile, Store


OPTIONS = PublishOptions(Layout("", "dist"), make_front=next_front_page)
NAME = "alpha-1.0-py3-none-any.whl"


def add(folder: Path, name: str, version: str = "1.0") -> Path:
    return make_wheel(folder, name, {}, version=version, tag="py3-none-any", is_purelib=True).parent


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    publish(add(tmp_path / "dist", "alpha"), store, OPTIONS)
    return store


def marks(store: Store, project: str = "alpha") -> list[object]:
    page = json.loads(store.read(f"{project}/index.json"))
    html = store.read(f"{project}/index.html").count(b"data-yanked")
    found = [file.get("yanked") for file in page["files"]]
    assert html == sum(mark not in {None, False} for mark in found)
    return found


def test_yanking_and_unyanking_change_both_page_forms_and_the_front_page(store: Store) -> None:
    report = change_published_marks(store, Yanking({NAME: "bad code"}), next_front_page)
    assert (report.projects, report.yanked) == ({"alpha": [NAME]}, {NAME: "bad code"})
    assert marks(store) == ["bad code"]
    assert b"bad code" in store.read("packages.html")
    assert change_published_marks(store, Yanking({}, (NAME,)), next_front_page).yanked == {}
    assert marks(store) == [None]
    assert b"bad code" not in store.read("packages.html")


def test_later_publishers_keep_yanked_marks(store: Store, tmp_path: Path) -> None:
    change_published_marks(store, Yanking({NAME: "bad code"}), next_front_page)
    publish(add(tmp_path / "dist", "alpha", "2.0"), store, OPTIONS)
    assert marks(store) == ["bad code", None]


def test_a_family_index_also_gets_the_mark(store: Store, tmp_path: Path) -> None:
    publish(add(tmp_path / "dist/gfx94X", "beta").parent, store, OPTIONS)
    report = change_published_marks(store, Yanking({NAME: ""}), next_front_page)
    assert list(report.families) == ["gfx94X"]
    assert (marks(store), marks(store, "gfx94X/alpha")) == ([True], [True])


def test_a_file_that_only_a_family_has_is_yanked_there(store: Store, tmp_path: Path) -> None:
    publish(add(tmp_path / "dist/gfx94X", "beta").parent, store, OPTIONS)
    change_published_marks(store, Yanking({"beta-1.0-py3-none-any.whl": "no"}), next_front_page)
    assert marks(store, "gfx94X/beta") == ["no"]


def test_the_main_front_page_shows_yanked_files_of_a_family(store: Store, tmp_path: Path) -> None:
    targets: dict[str, Path | bytes] = {"beta-1.0.dist-info/rocm_targets.json": b'{"rocm_targets": ["gfx942"]}'}
    make_wheel(tmp_path / "dist/gfx94X", "beta", targets, tag="py3-none-any", is_purelib=True)
    publish(tmp_path / "dist", store, OPTIONS)
    assert b"install &quot;beta&quot;" in store.read("packages.html")
    change_published_marks(store, Yanking({"beta-1.0-py3-none-any.whl": "bad code"}), next_front_page)
    assert b"beta 1.0: bad code" in store.read("packages.html")
    assert b"install &quot;beta&quot;" not in store.read("packages.html")


@pytest.mark.parametrize(
    ("yanking", "message"),
    [
        (Yanking({"alpha-9.0-py3-none-any.whl": ""}), "is not in the index, so it can't be yanked"),
        (Yanking({NAME: "a\nb"}), "which contains control characters"),
        (Yanking({NAME: ""}, (NAME,)), "can't be both yanked and unyanked"),
        (Yanking({"notes.txt": ""}), "isn't a valid wheel or sdist file name"),
    ],
)
def test_an_impossible_mark_is_refused(store: Store, yanking: Yanking, message: str) -> None:
    before = {file.name: file.e_tag for file in store.list()}
    with pytest.raises(InputError, match=message):
        change_published_marks(store, yanking, next_front_page)
    assert {file.name: file.e_tag for file in store.list()} == before


def test_a_store_without_an_index_is_refused() -> None:
    with pytest.raises(InputError, match="is not an index that rocwheel published"):
        change_published_marks(
            ObjectStore(obstore.store.MemoryStore(), "memory://"), Yanking({NAME: ""}), next_front_page
        )


@pytest.mark.parametrize(
    "url",
    [
        f"https://cdn.example/dist/{NAME}",
        f"HTTPS://cdn.example:8443/a%20b%2Fc/{NAME}",
        f"//cdn.example:8443/dist/{NAME}",
        f"/dist/{NAME}",
        f"../../my%20dist/{NAME}",
    ],
)
def test_existing_file_urls_are_unchanged(store: Store, tmp_path: Path, url: str) -> None:
    page = json.loads(store.read("alpha/index.json"))
    page["files"][0]["url"] = url
    store.put("alpha/index.json", json.dumps(page).encode(), create=False)
    change_published_marks(store, Yanking({NAME: ""}), next_front_page)
    publish(add(tmp_path / "dist", "alpha", "2.0"), store, OPTIONS)
    files = json.loads(store.read("alpha/index.json"))["files"]
    assert [file["url"] for file in files] == [url, "../dist/alpha-2.0-py3-none-any.whl"]
    assert f'href="{url}#sha256='.encode() in store.read("alpha/index.html")


class Delayed:
    """A store where others do something after a page was loaded, and something more before one is replaced."""

    def __init__(self, store: Store, loaded: Callable[[], object], swapped: Callable[[], object]) -> None:
        self._store, self._steps = store, {"load alpha/index.html": loaded, "swap alpha/index.json": swapped}

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def load(self, name: str) -> LoadedFile:
        """Return a file, and have the others go on."""
        found = self._store.load(name)
        self._steps.pop(f"load {name}", lambda: None)()
        return found

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a file after the others have gone on."""
        self._steps.pop(f"swap {name}", lambda: None)()
        return self._store.swap(name, data, e_tag)


class Unyanker:
    """Somebody who takes the mark away, and waits before each replacement of a page until told to go on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting, self._go = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=change_published_marks, args=(self, Yanking({}, (NAME,)), next_front_page))
        self._is_over = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
        """Replace a file when told to."""
        if not self._is_over:
            self._waiting.release()
            assert self._go.acquire(timeout=60)
        return self._store.swap(name, data, e_tag)

    def begin(self, swaps: int) -> None:
        """Go on until so many pages are replaced, and the next is to be."""
        self._thread.start()
        for _ in range(swaps):
            assert self._waiting.acquire(timeout=60)
            self._go.release()
        assert self._waiting.acquire(timeout=60)

    def end(self) -> None:
        """Do the rest."""
        self._is_over = True
        self._go.release()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("swaps", [0, 1, 2, 3])
def test_a_mark_removed_while_another_run_publishes_stays_removed(store: Store, tmp_path: Path, swaps: int) -> None:
    change_published_marks(store, Yanking({NAME: "bad"}), next_front_page)
    store.put(".rocwheel-published.json", b"{}", create=False)  # so that the pages are read
    other = Unyanker(store)
    delayed = cast("Store", Delayed(store, lambda: other.begin(swaps), other.end))
    publish(add(tmp_path / "other", "alpha", "2.0"), delayed, OPTIONS)
    assert marks(store) == [None, None]
    assert b'"yanked"' not in store.read("alpha/index.json")


def test_nothing_is_yanked_after_a_killed_unyanking(store: Store, tmp_path: Path) -> None:
    change_published_marks(store, Yanking({NAME: "bad"}), next_front_page)
    before = store.read("alpha/index.html")
    change_published_marks(store, Yanking({}, (NAME,)), next_front_page)
    page = json.loads(store.read("alpha/index.json"))
    page["files"][0]["yanked"] = False
    store.put("alpha/index.json", json.dumps(page).encode(), create=False)
    store.put("alpha/index.html", before, create=False)
    publish(add(tmp_path / "other", "alpha", "2.0"), store, OPTIONS)
    assert marks(store) == [False, None]
    change_published_marks(store, Yanking({NAME: "bad"}), next_front_page)
    assert marks(store) == ["bad", None]


def test_a_mark_added_to_the_html_page_after_unyanking_counts(store: Store, tmp_path: Path) -> None:
    change_published_marks(store, Yanking({NAME: "bad"}), next_front_page)
    marked = store.read("alpha/index.html")
    change_published_marks(store, Yanking({}, (NAME,)), next_front_page)
    store.put("alpha/index.html", marked, create=False)
    publish(add(tmp_path / "other", "alpha", "2.0"), store, OPTIONS)
    assert marks(store) == ["bad", None]


@pytest.mark.parametrize("name", ["alpha/index.json", "alpha/index.html", ".rocwheel-published.json", "packages.html"])
@pytest.mark.parametrize("is_yanked", [True, False])
def test_a_concurrent_publisher_loses_nothing(store: Store, tmp_path: Path, name: str, is_yanked: bool) -> None:
    if not is_yanked:
        change_published_marks(store, Yanking({NAME: "bad"}), next_front_page)
    other = partial(publish, add(tmp_path / "other", "alpha", "2.0"), options=OPTIONS)
    raced = cast("Store", RacedStore(store, name, other))
    yanking = Yanking({NAME: "bad"}) if is_yanked else Yanking({}, (NAME,))
    change_published_marks(raced, yanking, next_front_page)
    assert marks(store) == ["bad" if is_yanked else None, None]
