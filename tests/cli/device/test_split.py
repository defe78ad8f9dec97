"""``rocwheel device split`` and ``join`` as a user runs them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.kpack_reader import load_unit, units_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a fat library of two units, the second of which lacks a target."""
    build_fat_library(tmp_path / "tree/lib/libx.so", [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")])
    (tmp_path / "tree/lib/odd_gfx906.hsaco").write_bytes(b"")
    return tmp_path / "tree"


def test_folders_and_what_stays_are_printed(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines()[:2] == [
        "stays in the host folder: lib/odd_gfx906.hsaco: a kernel file that no rule knows",
        "/out/host: 2 files, 1 library split",
    ]
    assert [line.split(",")[0] for line in out.replace(str(tmp_path), "").splitlines()[2:]] == [
        "/out/gfx906: 2 archives",
        "/out/gfx90a: 1 archive",
    ]


def test_a_dry_run_prints_the_document_and_writes_nothing(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out", "--dry-run", "--json")
    document = json.loads(out)
    assert (status, document["schema"], document["targets"]) == (
        0,
        "rocwheel.device-split/1",
        [
            {"target": "gfx906", "archives": 2, "files": 0, "size": 0},
            {"target": "gfx90a", "archives": 1, "files": 0, "size": 0},
        ],
    )
    assert not (tmp_path / "out").exists()


def test_joining_some_targets_says_which_are_missing(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    status, out, _ = run(
        "device", "join", tmp_path / "out/host", tmp_path / "out/gfx906", "--dest-dir", tmp_path / "fat"
    )
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines() == [
        "/fat/lib/libx.so: 2 bundles, 5.0 kB for gfx906; missing: gfx90a",
        "/fat: 1 library joined, 1 copied",
    ]


def test_archives_that_are_missing_are_named(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "join", tmp_path / "out/host", "--dest-dir", tmp_path / "fat")
    assert status == 2
    assert "its archives are missing; expected at least one of ../.kpack/libx.so" in err.replace("\n", " ")


def test_archives_are_kept_in_the_folder_that_is_asked_for(run: Run, tree: Path, tmp_path: Path) -> None:
    kept = "usr/lib/x86_64-linux-gnu"
    (tree / kept).mkdir(parents=True)
    (tree / "lib/libx.so").rename(tree / kept / "libx.so")
    order = ("--archives", f"{kept}/rocm-kpack/", "--dest-dir", tmp_path / "out")
    assert run("device", "split", tree, *order).status == 0
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.kpack")) == [
        f"gfx906/{kept}/rocm-kpack/libx.so-part2_gfx906.kpack",
        f"gfx906/{kept}/rocm-kpack/libx.so_gfx906.kpack",
        f"gfx90a/{kept}/rocm-kpack/libx.so_gfx90a.kpack",
    ]
    made = tmp_path / "made"
    for folder in ("host", "gfx906", "gfx90a"):
        shutil.copytree(tmp_path / "out" / folder, made, dirs_exist_ok=True)
    library = made / kept / "libx.so"
    codes = [load_unit(library, unit, ["gfx906"], old=True) for unit in units_of(library)]
    assert [isinstance(code, bytes) for code in codes] == [True, True]
    assert run("targets", "runs-on", "gfx906", library).status == 0
    assert run("device", "split", made, "--dest-dir", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / kept / "libx.so").read_bytes() == library.read_bytes()
    assert run("device", "join", made, "--dest-dir", tmp_path / "fat").status == 0
    assert list((tmp_path / "fat").rglob("*.kpack")) == []


@pytest.mark.parametrize("folder", ["/abs", "../x", "a/../..", "", "a@GFXARCH@", "a:b"])
def test_archives_go_to_no_folder_outside_of_the_tree(run: Run, tree: Path, tmp_path: Path, folder: str) -> None:
    status, _, err = run("device", "split", tree, "--archives", folder, "--dest-dir", tmp_path / "out")
    assert status == 2
    assert err.startswith(f"error: --archives: {folder!r} names no folder for archives; expected a folder below")
    assert not (tmp_path / "out").exists()


def test_archives_below_a_file_are_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    order = ("--archives", "lib/libx.so/kpack", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tree, *order)
    assert (status, err) == (
        2,
        "error: lib/libx.so: is a file, and archives would be below it; expected another folder for archives\n",
    )


def test_wheels_keep_archives_where_they_are_looked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"")
    order = ("--archives", "kpack", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", *order)
    assert status == 2
    assert "is a wheel; expected a file or folder for --archives" in err


def test_mending_is_not_for_wheels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", "--mend", "--dest-dir", tmp_path / "out")
    assert (status, "a file or folder for --mend" in err) == (2, True)
