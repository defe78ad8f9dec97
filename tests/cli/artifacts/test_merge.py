"""``rocwheel artifacts merge``, run as users run it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.kpack_files import by_hand, make_kpack, toc

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


KERNEL = "stage/lib/rocblas/library/x_gfx942.co"


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    stage = next(folder for folder in path.parents if folder.name == "stage")
    stage.with_name("artifact_manifest.txt").write_text("stage\n")


@pytest.mark.parametrize(
    ("path", "contents", "found"),
    [
        pytest.param(KERNEL, (b"1", b"2"), "is not the same as a/blas_lib_gfx942/stage/", id="conflicting kernels"),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack",
            (b"", make_kpack({("lib/x.so", 0, "gfx906"): b"code"})),
            "is for gfx942 by its name, and contains code for gfx906",
            id="a name that lies",
        ),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack",
            (b"", make_kpack({("lib/x.so", 0, "gfx942"): b"code"})[:-9]),
            "x_gfx942.kpack: offset 0x",
            id="truncated",
        ),
        pytest.param(
            "stage/.kpack/x_gfx942.kpack", (b"", by_hand(toc(), version=2)), "offset 0x4: a kpack archive of version 2",
            id="another version",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_shard_is_named_and_nothing_written(
    run: Run, tmp_path: Path, path: str, contents: tuple[bytes, bytes], found: str
) -> None:
    for shard, content in zip(("a", "b"), contents, strict=True):
        if content:
            write(tmp_path / shard / "blas_lib_gfx942" / path, content)
    status, _, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out")
    assert (status, found in stderr, f"b/blas_lib_gfx942/{path}" in stderr) == (2, True, True), stderr
    assert sorted(made.name for made in tmp_path.iterdir()) == ["a", "b"]


def test_a_target_that_a_shard_declares_and_lacks_is_named(run: Run, tmp_path: Path) -> None:
    for shard, targets in (("a", "gfx942;gfx950"), ("b", "gfx1100")):
        text = json.dumps({"dist_amdgpu_targets": targets}).encode()
        write(tmp_path / shard / "base_lib_generic/stage/share/therock/dist_info.json", text)
    status, _, stderr = run("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out")
    assert (status, "names gfx950, for which a has no file; expected a file" in stderr) == (2, True)
    assert not (tmp_path / "out").exists()
    command = ("artifacts", "merge", "a", "b", "--primary", "a", "--dest-dir", "out", "--allow-missing")
    status, stdout, _ = run(*command)
    assert (status, "a has nothing for gfx950, which its dist_info.json names" in stdout) == (0, True)
