"""Families have different files of one name: a mark is of the one that was given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.variant_wheels import add_gpu_package
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

FAMILIES = ("gfx103X-dgpu", "gfx94X-dcgpu")
NAME = "rocm_x-1.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a build of two families, whose files of one name differ."""
    for family in FAMILIES:
        members = {"rocm_x/family.py": family.encode()}
        make_wheel(tmp_path / "dist" / family, "rocm_x", members, tag="py3-none-any", is_purelib=True)
    return tmp_path / "dist"


def marks(index: Path) -> list[object]:
    pages = [json.loads((index / family / "rocm-x/index.json").read_bytes()) for family in FAMILIES]
    return [page["files"][0].get("yanked") for page in pages]


@pytest.mark.parametrize("how", ["folder", "published", "url"])
def test_a_mark_is_of_the_family_whose_file_was_given(run: Run, dist: Path, tmp_path: Path, how: str) -> None:
    words = ("index", dist) if how == "folder" else ("publish", dist, tmp_path / "store")
    assert run(*words).status == 0
    top = tmp_path if how == "folder" else tmp_path / "store"
    place = (top / "dist").as_uri() if how == "url" else str(top / "dist")
    first, second = (f"{place}/{family}/{NAME}" for family in FAMILIES)
    assert run("index", "yank", second, "--reason", "bad").status == 0
    assert marks(top / "simple") == [None, "bad"]
    assert run("index", "unyank", first).status == 0
    assert marks(top / "simple") == [None, "bad"]
    assert run("index", "yank", first, second).status == 0
    assert marks(top / "simple") == [True, True]


def test_a_name_alone_is_of_all_families(run: Run, dist: Path, tmp_path: Path) -> None:
    run("index", dist)
    assert run("index", "yank", NAME, "--output", tmp_path / "simple", "--reason", "bad").status == 0
    assert marks(tmp_path / "simple") == ["bad", "bad"]


def test_a_file_that_none_lists_is_not_taken_for_one_of_its_name(run: Run, dist: Path, tmp_path: Path) -> None:
    run("index", dist)
    refused = run("index", "yank", tmp_path / "elsewhere" / NAME, "--output", tmp_path / "simple")
    first, second = (dist / family / NAME for family in FAMILIES)
    says = f"is not listed, but other files of its name: {first}, {second}"
    assert (refused.status, says in " ".join(refused.stderr.split())) == (2, True)
    assert marks(tmp_path / "simple") == [None, None]


def test_the_page_above_an_index_of_a_family_tells_of_its_marks_at_once(run: Run, tmp_path: Path) -> None:
    for family, target in zip(FAMILIES, ("gfx1030", "gfx942"), strict=True):
        add_gpu_package(tmp_path / "dist" / family, f"rocm-sdk-device-{target}", targets=[target])
    run("index", tmp_path / "dist", "--url", "https://example.org/rocm/simple")
    simple, name = tmp_path / "simple", "rocm_sdk_device_gfx942-7.0.0-py3-none-any.whl"
    done = run("index", "yank", name, "--reason", "hangs", "--output", simple / FAMILIES[1])
    assert (done.status, done.stdout) == (0, f"{simple / FAMILIES[1]}: {name}: yanked: hangs\n")
    shown = [(simple / place).read_text() for place in ("packages.html", f"{FAMILIES[1]}/packages.html")]
    assert ["hangs" in page for page in shown] == [True, True]
    run("index", tmp_path / "dist", "--url", "https://example.org/rocm/simple")
    assert [(simple / place).read_text() for place in ("packages.html", f"{FAMILIES[1]}/packages.html")] == shown


def test_the_page_above_a_published_index_of_a_family_tells_of_its_marks_at_once(run: Run, tmp_path: Path) -> None:
    for family, target in zip(FAMILIES, ("gfx1030", "gfx942"), strict=True):
        add_gpu_package(tmp_path / "dist" / family, f"rocm-sdk-device-{target}", targets=[target])
    words = ("publish", tmp_path / "dist", tmp_path / "store", "--url", "https://example.org/rocm/simple")
    assert run(*words).status == 0
    simple, name = tmp_path / "store/simple", "rocm_sdk_device_gfx942-7.0.0-py3-none-any.whl"
    done = run("index", "yank", name, "--reason", "hangs", "--output", simple / FAMILIES[1])
    assert done.status == 0, done.stderr
    shown = [(simple / place).read_text() for place in ("packages.html", f"{FAMILIES[1]}/packages.html")]
    assert ["hangs" in page for page in shown] == [True, True]
    assert run(*words).status == 0
    assert [(simple / place).read_text() for place in ("packages.html", f"{FAMILIES[1]}/packages.html")] == shown
