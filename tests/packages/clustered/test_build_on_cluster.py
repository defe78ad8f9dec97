"""Builds on clusters of processes: the bytes of a local build, whatever becomes of workers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.dask_clusters import DaskCluster

pytestmark = pytest.mark.slow


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_a_cluster_makes_the_bytes_of_a_local_build(
    sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    place = ["--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(tmp_path)]
    done = rocwheel("build", *place, "--scheduler", dask_cluster.address)
    assert (done.returncode, digests(tmp_path / "dist")) == (0, digests(sample_dist)), done.stderr
    assert "All workers run on this machine: the build would be faster without --scheduler." in done.stderr
