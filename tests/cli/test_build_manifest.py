"""The manifest and the checksums that ``rocwheel build`` leaves."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel import __version__
from rocwheel.artifacts.transfer import extract_archives
from rocwheel.demo import SAMPLE_SDK
from rocwheel.stores.open import open_store
from tests.support.artifacts import artifact
from tests.support.command_line import rocwheel
from tests.support.dask_clusters import started_cluster
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.dask_clusters import DaskCluster
    from tests.support.s3_server import S3Server
    from tests.support.tools import RunTool

pytestmark = pytest.mark.slow

MANIFEST, SUMS = "rocwheel-build.json", "SHA256SUMS"


def small_tree(folder: Path) -> Path:
    """Return artifacts of which a build makes its wheels in a moment."""
    artifact(folder / "in", "base_lib_generic", {"share/base.txt": b"base" * 999})
    artifact(folder / "in", "blas_lib_generic", {"lib/blas.txt": b"blas" * 7777})
    return folder / "in"


def build(run: Run, tree: Path, dest: Path, *options: str | Path) -> dict[str, Any]:
    """Build, and return the manifest."""
    done = run("build", "--artifact-dir", tree, "--dest-dir", dest, "--version", "7.0", "--quiet", *options)
    assert (done.status, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads((dest / MANIFEST).read_bytes())
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def outputs_of(dest: Path) -> list[dict[str, Any]]:
    """Return what the manifest of all distributions below a folder has to say of these."""
    files = sorted(path for path in (dest / "dist").rglob("*") if path.is_file())
    return [
        {"path": path.relative_to(dest).as_posix(), "size": path.stat().st_size, "sha256": digest(path)}
        for path in files
    ]


def test_the_manifest_lists_the_inputs_and_outputs(run: Run, tmp_path: Path) -> None:
    found = build(run, SAMPLE_SDK, tmp_path / "out", "--selector", "wheel")
    assert [found["schema"], found["rocwheel"]] == ["rocwheel.build-manifest/1", __version__]
    assert (found["source_date_epoch"], found["tools"]["Python"]) == (315532800, platform.python_version())
    assert {"deflate", "zlib-ng", "libzstd"} <= found["tools"].keys()
    options = found["options"]
    assert (options["version"], options["selector"], options["level"]) == ("7.0", "wheel", 6)
    recipe = SAMPLE_SDK.parent / "build/rocm.toml"
    assert found["recipe"] == {"name": "rocm.toml", "sha256": digest(recipe), "place": ""}
    assert [one["name"] for one in found["inputs"]] == sorted(
        path.name.partition(".")[0] for path in SAMPLE_SDK.glob("*.tar.xz")
    )
    assert found["outputs"] == outputs_of(tmp_path / "out")
    assert len(found["outputs"]) == 8


def test_inputs_are_recorded_with_a_hash_of_their_files_and_a_relative_path(run: Run, tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    (first, _) = build(run, tree, tmp_path / "out")["inputs"]
    line = f"{digest(tree / 'base_lib_generic/stage/share/base.txt')}  stage/share/base.txt\n"
    assert first == {
        "name": "base_lib_generic",
        "files": 1,
        "size": 3996,
        "sha256": hashlib.sha256(line.encode()).hexdigest(),
        "place": "../in/base_lib_generic",
    }
    assert (tmp_path / "out" / first["place"]).is_dir()


def test_sha256sum_accepts_the_checksums(run: Run, tmp_path: Path, run_tool: RunTool) -> None:
    build(run, small_tree(tmp_path), tmp_path / "out")
    done = subprocess.run(["sha256sum", "--strict", "-c", SUMS], cwd=tmp_path / "out", capture_output=True, check=True)
    assert [line.rpartition(b": ")[2] for line in done.stdout.splitlines()] == [b"OK"] * done.stdout.count(b"\n")
    assert done.stdout.count(b"\n") == len(outputs_of(tmp_path / "out"))


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [[], ["--cache"], ["--variants"], ["--split-device"], ["--split-device=overlay"], ["--level", "stored"]],
    ids=" ".join,
)
def test_a_second_build_writes_the_same_manifest(run: Run, tmp_path: Path, options: list[str]) -> None:
    texts = []
    for number in range(2):
        found = build(run, SAMPLE_SDK, tmp_path / "out", *options, "--jobs", str(number + 1))
        assert found["outputs"] == outputs_of(tmp_path / "out")
        texts.append([(tmp_path / "out" / name).read_bytes() for name in (MANIFEST, SUMS)])
    assert texts[0] == texts[1]
    build(run, SAMPLE_SDK, tmp_path / "elsewhere", *options)
    assert [(tmp_path / "elsewhere" / name).read_bytes() for name in (MANIFEST, SUMS)] == texts[0]


def test_wheels_left_unchanged_are_in_the_manifest(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), tmp_path / "in")
    where = ["--artifact-dir", tmp_path / "in", "--dest-dir", tmp_path / "out"]
    for standing in (0, 7):
        done = run("build", *where, "--cache", "--json", "--quiet")
        document = json.loads(done.stdout)
        assert len(document["standing"]) == standing
        assert document["manifest"] == f"{tmp_path}/out/{MANIFEST}"
        assert {one["path"]: one["sha256"] for one in document["distributions"]} == {
            f"{tmp_path}/out/{one['path']}": one["sha256"] for one in outputs_of(tmp_path / "out")
        }


def test_large_members_are_hashed_as_stored_in_the_wheel(run: Run, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 33
    large = small_tree(tmp_path) / "blas_lib_generic/stage/lib/large.txt"
    large.write_bytes(data)
    assert len(data) > 32 << 20
    assert build(run, tmp_path / "in", tmp_path / "out")["outputs"] == outputs_of(tmp_path / "out")


def test_a_recipe_is_recorded_with_its_hash_and_path(run: Run, tmp_path: Path) -> None:
    text = (SAMPLE_SDK.parent / "build/rocm.toml").read_bytes()
    (tmp_path / "mine.toml").write_bytes(text + b"# mine\n")
    found = build(run, small_tree(tmp_path), tmp_path / "out", "--recipe", tmp_path / "mine.toml")
    assert found["recipe"] == {
        "name": "mine.toml",
        "sha256": hashlib.sha256(text + b"# mine\n").hexdigest(),
        "place": "../mine.toml",
    }


def test_a_path_that_is_not_utf8_is_recorded_in_the_manifest(run: Run, tmp_path: Path) -> None:
    tree = small_tree(tmp_path).rename(tmp_path / "i\udcffn")
    assert build(run, tree, tmp_path / "out")["inputs"][0]["place"] == "../i\udcffn/base_lib_generic"


def test_a_build_that_fails_in_planning_keeps_the_manifest_of_the_previous_build(run: Run, tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    before = build(run, tree, tmp_path / "out")
    assert run("build", "--artifact-dir", tree, "--dest-dir", tmp_path / "out", "--targets", "gfx906").status == 2
    assert json.loads((tmp_path / "out" / MANIFEST).read_bytes()) == before


def test_foreign_checksum_files_are_kept_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    tree = small_tree(tmp_path)
    (tree / SUMS).write_text(f"{'0' * 64}  base_lib_generic.tar.xz\n")
    done = run("build", "--artifact-dir", tree, "--dest-dir", tree, "--version", "7.0")
    assert done.status == 2
    assert "SHA256SUMS: contains checksums for files that aren't from a build; expected no file" in done.stderr
    assert not (tree / "dist").exists()


KILLED = """
import itertools, os, pathlib, signal, sys
last, is_after = int(sys.argv.pop(1)), sys.argv.pop(1) == "after"
numbers = itertools.count(1)

def deadly(function):
    def called(path, *more, **named):
        is_last = next(numbers) == last
        if is_last and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(path, *more, **named)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return called

pathlib.Path.replace = deadly(pathlib.Path.replace)
pathlib.Path.unlink = deadly(pathlib.Path.unlink)
from rocwheel.__main__ import main
main()
"""


@pytest.mark.deep
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_build_killed_at_any_rename_leaves_no_stale_manifest(run: Run, tmp_path: Path, moment: str) -> None:
    tree, out = small_tree(tmp_path), tmp_path / "out"
    command = ["build", "--artifact-dir", tree, "--dest-dir", out, "--version", "7.0", "--quiet", "--level"]
    states = set()
    for number in itertools.count(1):
        build(run, tree, out, "--level", "1")
        # The same names, and other bytes.
        words = [sys.executable, "-c", KILLED, str(number), moment, *map(str, command), "9"]
        status = subprocess.run(words, check=False).returncode
        names = {name for name in (MANIFEST, SUMS) if (out / name).exists()}
        states.add(frozenset(names))
        if MANIFEST in names:
            assert json.loads((out / MANIFEST).read_bytes())["outputs"] == outputs_of(out)
        if SUMS in names:
            subprocess.run(["sha256sum", "--strict", "--quiet", "-c", SUMS], cwd=out, check=True)
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert states == {frozenset({MANIFEST, SUMS}), frozenset({SUMS}), frozenset()}
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []


def test_a_cluster_build_writes_the_same_manifest_to_disk(run: Run, tmp_path: Path, dask_cluster: DaskCluster) -> None:
    tree = small_tree(tmp_path)
    for place, options in (("here", []), ("there", ["--scheduler", dask_cluster.address])):
        done = rocwheel("build", "--artifact-dir", tree, "--dest-dir", tmp_path / place, "--version", "7.0", *options)
        assert done.returncode == 0, done.stderr
    for name in (MANIFEST, SUMS):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_a_cluster_build_uploads_the_manifest_to_a_store(run: Run, tmp_path: Path, s3: S3Server) -> None:
    tree, url = small_tree(tmp_path), f"s3://{BUCKET}/manifest"
    command = ["build", "--artifact-dir", str(tree), "--dest-dir", url, "--version", "7.0", "--json", "--quiet"]
    with started_cluster(tmp_path / "cluster", [s3.environ]) as cluster:
        command += ["--scheduler", cluster.address]
        done = rocwheel(*command)
        assert done.returncode == 0, done.stderr
        here = build(run, tree, tmp_path / "out")
        store = open_store(url)
        there = json.loads(store.read(MANIFEST))
        assert json.loads(done.stdout)["manifest"] == f"{url}/{MANIFEST}"
        assert there["outputs"] == here["outputs"]
        assert there["inputs"][0]["place"] == "base_lib_generic"
        assert store.read(SUMS) == (tmp_path / "out" / SUMS).read_bytes()
        store.swap(SUMS, b"0" * 64 + b"  other\n", store.load(SUMS).e_tag)
        again = rocwheel(*command)
    assert (again.returncode, "SHA256SUMS: contains checksums of files" in again.stderr) == (2, True)
