"""``rocwheel device split`` and ``join`` as a user runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.fat_libraries import build_fat_library, make_bundle

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


def test_mending_is_not_for_wheels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", "--mend", "--dest-dir", tmp_path / "out")
    assert (status, "a file or folder for --mend" in err) == (2, True)
