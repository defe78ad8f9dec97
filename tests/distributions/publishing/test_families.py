"""Builds per family on a store: an index for each, of its files and those that all share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import obstore.store
import pytest

from rocwheel.distributions.publishing.publish import PublishedFamily, publish
from rocwheel.foundation.errors import InputError, ProblemsError
from rocwheel.stores.object_store import ObjectStore
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import Store

CORE, DEVEL = "core-1.0-py3-none-any.whl", "devel-1.0-py3-none-any.whl"


def add(folder: Path, name: str, text: bytes = b"") -> Path:
    return make_wheel(folder, name, {f"{name}.py": text}, tag="py3-none-any", is_purelib=True)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    add(tmp_path / "dist", "core")
    for family in ("gfx103X", "gfx94X"):
        add(tmp_path / "dist" / family, "devel", family.encode())
    return tmp_path / "dist"


@pytest.fixture
def store() -> Store:
    return ObjectStore(obstore.store.MemoryStore(), "memory://")


def urls(store: Store, index: str) -> dict[str, list[str]]:
    projects = [one["name"] for one in json.loads(store.read(f"{index}/index.json"))["projects"]]
    pages = {name: json.loads(store.read(f"{index}/{name}/index.json")) for name in projects}
    return {name: [file["url"] for file in page["files"]] for name, page in pages.items()}


def test_each_family_has_an_index_of_its_files_and_of_those_that_all_share(dist: Path, store: Store) -> None:
    report = publish(dist, store)
    assert urls(store, "simple") == {"core": [f"../../dist/{CORE}"]}
    for family in ("gfx103X", "gfx94X"):
        assert urls(store, f"simple/{family}") == {
            "core": [f"../../../dist/{CORE}"],
            "devel": [f"../../../dist/{family}/{DEVEL}"],
        }
    assert report.uploaded == (CORE, f"gfx103X/{DEVEL}", f"gfx94X/{DEVEL}")
    assert (report.listed, report.ignored) == ((CORE,), ())
    assert report.families["gfx94X"] == PublishedFamily("memory:/simple/gfx94X", (CORE, DEVEL), ("core", "devel"))


def test_the_next_run_of_families_changes_nothing(dist: Path, store: Store) -> None:
    publish(dist, store)
    before = {file.name: file.e_tag for file in store.list()}
    report = publish(dist, store)
    assert (report.uploaded, report.families["gfx94X"].pages) == ((), ())
    assert {file.name: file.e_tag for file in store.list()} == before


def test_families_without_shared_files_are_published(dist: Path, store: Store) -> None:
    (dist / CORE).unlink()
    assert publish(dist, store).families.keys() == {"gfx103X", "gfx94X"}
    assert urls(store, "simple") == {}
    assert list(urls(store, "simple/gfx94X")) == ["devel"]


def test_a_family_that_is_called_like_a_project_is_refused(dist: Path, store: Store) -> None:
    add(dist / "core", "other")
    with pytest.raises(InputError, match="simple/core: is the page of a project"):
        publish(dist, store)
    assert list(store.list()) == []


def test_problems_of_all_families_are_reported_once_and_nothing_is_sent(dist: Path, store: Store) -> None:
    for folder in (dist, dist / "gfx94X"):
        (folder / "bad-1.0-py3-none-any.whl").write_bytes(b"PK")
    with pytest.raises(ProblemsError) as caught:
        publish(dist, store)
    assert len(caught.value.problems) == 2
    assert list(store.list()) == []
