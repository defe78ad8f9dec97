"""``audit``, ``inspect`` and ``index`` with the workers of a cluster: what they print without."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.folder_notes import KNOWN_NAME
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from tests.support.dask_clusters import DaskCluster

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", [["audit"], ["inspect"], ["inspect", "--deep"]])
def test_a_cluster_produces_the_same_document(command: list[str], sample_dist: Path, dask_cluster: DaskCluster) -> None:
    words = [*command, str(sample_dist), "--json", "--quiet"]
    here, there = rocwheel(*words), rocwheel(*words, "--scheduler", dask_cluster.address)
    assert (there.returncode, there.stderr) == (here.returncode, here.stderr)
    assert json.loads(there.stdout) == json.loads(here.stdout)


def test_an_index_written_with_a_cluster_is_the_same_and_is_reused_by_the_next_run(
    sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    dist = tmp_path / "dist"
    shutil.copytree(sample_dist, dist)
    done = rocwheel("index", dist, "--output", tmp_path / "there", "--scheduler", dask_cluster.address, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert rocwheel("index", dist, "--output", tmp_path / "here", "--quiet").returncode == 0
    pages = [path.relative_to(tmp_path / "here") for path in sorted((tmp_path / "here").rglob("index.*"))]
    assert len(pages) > 10
    assert [(tmp_path / "there" / page).read_bytes() for page in pages] == [
        (tmp_path / "here" / page).read_bytes() for page in pages
    ]
    notes = [json.loads((tmp_path / place / KNOWN_NAME).read_bytes())["files"] for place in ("there", "here")]
    there, here = ({name: note[1] for name, note in files.items()} for files in notes)
    assert there == here  # by these stamps, the next run knows the files again


@pytest.mark.parametrize("command", ["audit", "inspect", "index"])
def test_workers_resolve_relative_paths_to_the_same_files(
    command: str, sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sample_dist, tmp_path / "plain/dist")
    monkeypatch.chdir(tmp_path)
    whole = rocwheel(command, tmp_path / "plain/dist", "-q")
    done = rocwheel(command, "plain/dist", "-q", "--scheduler", dask_cluster.address)
    assert (done.returncode, done.stderr, done.stdout) == (whole.returncode, whole.stderr, whole.stdout)


def test_an_index_of_relative_paths_is_written_to_the_given_folder(
    sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sample_dist, tmp_path / "plain/dist")
    monkeypatch.chdir(tmp_path / "plain")
    words = ["index", "dist", "--quiet", "--output"]
    assert rocwheel(*words, "there", "--scheduler", dask_cluster.address).returncode == 0
    assert rocwheel(*words, "here").returncode == 0
    pages = [Path("here", "rocm-sdk-core", name) for name in ("index.html", "index.json")]
    for page in pages:
        assert Path("there", *page.parts[1:]).read_bytes() == page.read_bytes()


def test_a_damaged_wheel_is_reported_the_same_with_a_cluster(
    sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    dist = tmp_path / "dist"
    shutil.copytree(sample_dist, dist)
    wheel = next(dist.glob("rocm_profiler*"))
    wheel.write_bytes(wheel.read_bytes()[:-100])
    for command in ("audit", "inspect", "index"):
        here, there = rocwheel(command, dist, "-q"), rocwheel(command, dist, "-q", "--scheduler", dask_cluster.address)
        assert (there.returncode, there.stderr) == (here.returncode, here.stderr)
        assert wheel.name in there.stderr
