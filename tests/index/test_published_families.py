"""Builds per family on a store: an index for each, of its files and those that all share."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from typing import TYPE_CHECKING, cast

import obstore.store
import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishedFamily, PublishOptions, publish
from rocwheel.stores.objects import ObjectStore
from tests.support.raced_store import RacedStore
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


def test_each_family_has_an_index_of_its_own_and_the_shared_files(dist: Path, store: Store) -> None:
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


def test_the_second_run_with_families_changes_nothing(dist: Path, store: Store) -> None:
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


def test_a_family_with_the_name_of_a_project_is_refused(dist: Path, store: Store) -> None:
    add(dist / "core", "other")
    with pytest.raises(InputError, match="simple/core: is the page of a project"):
        publish(dist, store)
    assert list(store.list()) == []


def test_problems_in_all_families_are_reported_once_and_nothing_is_uploaded(dist: Path, store: Store) -> None:
    for folder in (dist, dist / "gfx94X"):
        (folder / "bad-1.0-py3-none-any.whl").write_bytes(b"PK")
    with pytest.raises(ProblemsError) as caught:
        publish(dist, store)
    assert len(caught.value.problems) == 2
    assert list(store.list()) == []


def families_on(store: Store, page: str = "simple/packages.html") -> list[str]:
    return re.findall('<h3><a href="([^"]*)/packages.html">', store.read(page).decode())


def buttons(store: Store) -> list[str]:
    return re.findall('<form action="([^"]*)">', store.read("simple/index.html").decode())


FRONT = PublishOptions(make_front=next_front_page)


def test_the_main_pages_link_to_families_and_back(dist: Path, store: Store) -> None:
    publish(dist, store, FRONT)
    assert families_on(store) == ["gfx103X", "gfx94X"]
    assert buttons(store) == ["packages.html", "gfx103X/packages.html", "gfx94X/packages.html"]
    assert b'href="../packages.html"' in store.read("simple/gfx94X/packages.html")
    before = {file.name: file.e_tag for file in store.list()}
    publish(dist, store, FRONT)
    assert {file.name: file.e_tag for file in store.list()} == before


def test_families_from_other_publishers_are_also_listed(dist: Path, store: Store, tmp_path: Path) -> None:
    shutil.move(dist / "gfx94X", tmp_path / "gfx94X")
    publish(dist, store, FRONT)
    shutil.move(dist / "gfx103X", tmp_path / "gone")
    shutil.move(tmp_path / "gfx94X", dist)
    publish(dist, store, FRONT)
    assert families_on(store) == ["gfx103X", "gfx94X"]
    shutil.rmtree(dist / "gfx94X")
    publish(dist, store, FRONT)
    assert families_on(store) == ["gfx103X", "gfx94X"]
    assert buttons(store) == ["packages.html", "gfx103X/packages.html", "gfx94X/packages.html"]


def test_a_removed_family_is_no_longer_listed(dist: Path, store: Store) -> None:
    publish(dist, store, FRONT)
    for file in list(store.list("simple/gfx94X")):
        store.delete(file.name)
    shutil.rmtree(dist / "gfx94X")
    publish(dist, store, FRONT)
    assert families_on(store) == ["gfx103X"]
    assert buttons(store) == ["packages.html", "gfx103X/packages.html"]


def test_a_gpu_links_to_the_family_with_its_packages(dist: Path, store: Store) -> None:
    targets: dict[str, Path | bytes] = {"fam-1.0.dist-info/rocm_targets.json": b'{"rocm_targets": ["gfx942"]}'}
    make_wheel(dist / "gfx94X", "fam", targets, tag="py3-none-any", is_purelib=True)
    publish(dist, store, FRONT)
    assert b'href="gfx94X/packages.html#gfx942"' in store.read("simple/packages.html")


@pytest.mark.parametrize(
    "name", ["gfx103X/index.html", "gfx103X/packages.html", "index.json", "index.html", "packages.html"]
)
def test_families_of_concurrent_publishers_are_both_listed(dist: Path, store: Store, tmp_path: Path, name: str) -> None:
    add(tmp_path / "other", "core")
    shutil.move(dist / "gfx94X", tmp_path / "other")
    other = partial(publish, tmp_path / "other", options=FRONT)
    publish(dist, cast("Store", RacedStore(store, f"simple/{name}", other)), FRONT)
    assert families_on(store) == ["gfx103X", "gfx94X"]
    assert buttons(store) == ["packages.html", "gfx103X/packages.html", "gfx94X/packages.html"]


def test_a_family_with_a_hostile_name_is_escaped_everywhere(dist: Path, store: Store) -> None:
    name = '<b>\u00e4 100% "$x"'
    add(dist / name, "devel")
    publish(dist, store, FRONT)
    folder = "%3Cb%3E%C3%A4%20100%25%20%22%24x%22"
    assert families_on(store) == [folder, "gfx103X", "gfx94X"]
    assert buttons(store)[1] == f"{folder}/packages.html"
    assert f"{name}/devel" in "".join(file.name for file in store.list("simple"))
    assert b"<b>" not in store.read("simple/packages.html") + store.read("simple/index.html")
    before = {file.name: file.e_tag for file in store.list()}
    publish(dist, store, FRONT)
    assert {file.name: file.e_tag for file in store.list()} == before


@pytest.mark.parametrize("name", ["packages.html", "index.html", "index.json"])
def test_a_family_with_the_name_of_a_page_is_refused(dist: Path, store: Store, name: str) -> None:
    add(dist / name, "other")
    with pytest.raises(InputError, match=f"simple/{name}: is a page of the index"):
        publish(dist, store, FRONT)
    assert list(store.list()) == []
