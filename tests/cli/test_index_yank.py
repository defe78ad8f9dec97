"""``rocwheel index yank`` and ``unyank``."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel
from tests.support.variant_wheels import add_gpu_package
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


NAME = "a-1.0-py3-none-any.whl"

run = partial(rocwheel, "index")


@pytest.fixture
def dist_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    make_wheel(folder, "a", {}, tag="py3-none-any", is_purelib=True)
    make_wheel(folder / "gfx94X-dcgpu", "b", {}, tag="py3-none-any", is_purelib=True)
    assert run(folder, "--quiet").returncode == 0
    return folder


@pytest.mark.slow
def test_a_file_is_yanked_with_a_reason_and_unyanked_in_all_indexes(dist_dir: Path, tmp_path: Path) -> None:
    yanked = run("yank", dist_dir / NAME, "--reason", 'eats "files"')
    assert yanked.returncode == 0
    assert yanked.stdout == (
        f'{tmp_path}/simple: {NAME}: yanked: eats "files"\n'
        f'{tmp_path}/simple/gfx94X-dcgpu: {NAME}: yanked: eats "files"\n'
    )
    for page in ("simple/a/index.html", "simple/gfx94X-dcgpu/a/index.html"):
        assert 'data-yanked="eats &quot;files&quot;"' in (tmp_path / page).read_text()
    unyanked = run("yank", "--undo", NAME, "--output", tmp_path / "simple", "--json", "--quiet")
    assert json.loads(unyanked.stdout)["yanked"] == {}
    assert "data-yanked" not in (tmp_path / "simple/a/index.html").read_text()


@pytest.mark.slow
def test_a_file_of_a_family_is_yanked_in_its_own_index(dist_dir: Path, tmp_path: Path) -> None:
    name = "b-1.0-py3-none-any.whl"
    yanked = run("yank", dist_dir / "gfx94X-dcgpu" / name)
    assert yanked.stdout == f"{tmp_path}/simple/gfx94X-dcgpu: {name}: yanked\n"


@pytest.mark.slow
def test_a_folder_without_an_index_is_reported_with_exit_status_2(tmp_path: Path) -> None:
    finished = run("yank", tmp_path / "other" / NAME)
    assert finished.returncode == 2
    assert finished.stderr == (
        f"error: {tmp_path}/simple-other: is not an index that rocwheel wrote. Run rocwheel index first, or "
        "specify the index with --output.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((f"http://127.0.0.1:1/dist/{NAME}",), f"http://127.0.0.1:1/dist/{NAME}"),
        ((NAME, "--output", "https://me:secret@host.invalid/simple"), "https://host.invalid/simple"),
    ],
    ids=["file", "output"],
)
@pytest.mark.parametrize("command", [("yank",), ("yank", "--undo")], ids=" ".join)
def test_an_index_on_a_web_server_is_reported_as_read_only(
    command: tuple[str, ...], words: tuple[str, ...], place: str
) -> None:
    done = run(*command, *words)
    message = f"{place}: can't be written to: web servers are read-only. Use an s3:// or file:// URL for the output."
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")


FAMILIES = ("gfx103X-dgpu", "gfx94X-dcgpu")
FAMILY_NAME = "rocm_x-1.0-py3-none-any.whl"


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
def test_a_yank_applies_to_the_family_of_the_given_file(run: Run, dist: Path, tmp_path: Path, how: str) -> None:
    words = ("index", dist) if how == "folder" else ("publish", dist, tmp_path / "store")
    assert run(*words).status == 0
    top = tmp_path if how == "folder" else tmp_path / "store"
    place = (top / "dist").as_uri() if how == "url" else str(top / "dist")
    first, second = (f"{place}/{family}/{FAMILY_NAME}" for family in FAMILIES)
    assert run("index", "yank", second, "--reason", "bad").status == 0
    assert marks(top / "simple") == [None, "bad"]
    assert run("index", "yank", "--undo", first).status == 0
    assert marks(top / "simple") == [None, "bad"]
    assert run("index", "yank", first, second).status == 0
    assert marks(top / "simple") == [True, True]


def test_a_bare_file_name_applies_to_all_families(run: Run, dist: Path, tmp_path: Path) -> None:
    run("index", dist)
    assert run("index", "yank", FAMILY_NAME, "--output", tmp_path / "simple", "--reason", "bad").status == 0
    assert marks(tmp_path / "simple") == ["bad", "bad"]


def test_an_unlisted_file_is_not_confused_with_files_of_the_same_name(run: Run, dist: Path, tmp_path: Path) -> None:
    run("index", dist)
    refused = run("index", "yank", tmp_path / "elsewhere" / FAMILY_NAME, "--output", tmp_path / "simple")
    first, second = (dist / family / FAMILY_NAME for family in FAMILIES)
    says = f"is not listed, but other files with its name are: {first}, {second}"
    assert (refused.status, says in " ".join(refused.stderr.split())) == (2, True)
    assert marks(tmp_path / "simple") == [None, None]


def test_the_parent_front_page_shows_a_yank_in_a_family_at_once(run: Run, tmp_path: Path) -> None:
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


def test_the_published_parent_front_page_shows_a_yank_in_a_family_at_once(run: Run, tmp_path: Path) -> None:
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
