"""``rocwheel artifacts merge``, run as users run it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.usefixtures("shards")


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two builds, ``a`` and ``b``, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for shard, target in (("a", "gfx942"), ("b", "gfx1100")):
        for artifact, path, content in (
            ("blas_lib_generic", "lib/librocblas.so", b"host"),
            (f"blas_lib_{target}", f"lib/rocblas/library/{target}/x.dat", target.encode()),
        ):
            stage = tmp_path / shard / artifact / "stage"
            (stage / path).parent.mkdir(parents=True)
            (stage / path).write_bytes(content)
            (stage.parent / "artifact_manifest.txt").write_text("stage\n")


def test_a_merge_is_told_as_a_table(run: Run, tmp_path: Path) -> None:
    status, stdout, _ = run("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out", "-q")

    assert status == 0
    rows = [line.split() for line in stdout.splitlines() if "blas_lib" in line]
    assert rows == [
        ["blas_lib_generic", "1", "4", "a"],
        ["blas_lib_gfx1100", "1", "7", "b"],
        ["blas_lib_gfx942", "1", "6", "a"],
    ]
    assert stdout.endswith("targets: gfx1100, gfx942\nwritten to out\n")
    assert (tmp_path / "out/blas_lib_gfx1100/stage/lib/rocblas/library/gfx1100/x.dat").read_bytes() == b"gfx1100"


def test_a_dry_run_writes_nothing(run: Run, tmp_path: Path) -> None:
    status, stdout, _ = run("artifacts", "merge", "a", "b", "--primary", "b", "-d", "out", "--dry-run", "--json")

    report = json.loads(stdout)
    assert status == 0
    assert (report["schema"], report["primary"], report["dest_dir"]) == ("rocwheel.artifact-merge/1", "b", "")
    assert not (tmp_path / "out").exists()


def test_a_result_in_a_shard_is_refused_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    status, stdout, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "b/out", "--dry-run")

    assert (status, stdout) == (2, "")
    assert stderr == "error: b/out: a folder in b, which is copied; expected one outside of it\n"
    assert not (tmp_path / "b/out").exists()


def test_what_differs_is_an_error_for_all_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b/blas_lib_generic/stage/lib/librocblas.so").write_bytes(b"other")

    status, stdout, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out")

    assert (status, stdout) == (2, "")
    assert "b/blas_lib_generic/stage/lib/librocblas.so: is not the same as a/blas_lib_generic/stage/lib/" in stderr
    assert not (tmp_path / "out").exists()


def test_an_accepted_difference_is_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b/blas_lib_generic/stage/lib/librocblas.so").write_bytes(b"other")

    arguments = ("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out", "--may-differ", "lib/*.so")
    status, stdout, _ = run(*arguments, "-v", "-q")

    assert status == 0
    assert "host files that differ: 1\n  lib/librocblas.so of b (bytes): primary's\n" in stdout
