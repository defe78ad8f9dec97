"""The build of a cluster with all its parts, but without machines: what they exchange, and what may go wrong."""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.build.cluster.build_on_cluster import SharedFolder, build_wheels
from rocwheel.build.cluster.tasks import Settings
from rocwheel.build.cluster.workers import worker_facts
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.errors import ProblemsError, WorkError
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import ChangedFileError
from rocwheel.core.workers import open_workers
from rocwheel.wheels.sdist import SourceDate
from tests.build.cluster.clusters import PlainCluster
from tests.support.artifacts import artifact
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.build.cluster.workers import Answer

OPTIONS = PlanOptions(version="7.0")


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.whl"))}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return artifacts, one of them packed: its files can be read by this process alone."""
    artifact(tmp_path / "in", "base_lib_generic", {"share/base.txt": b"base" * 9999, "share/empty": b""})
    artifact(tmp_path / "plain", "blas_lib_generic", {"lib/blas.txt": b"blas" * 7777, "lib/more.txt": b"more"})
    done = rocwheel("artifacts", "archive", tmp_path / "plain", "--output", tmp_path / "in")
    assert done.returncode == 0, done.stderr
    return tmp_path / "in"


def build(tree: Path, dest: Path, cluster: PlainCluster, *, stage_all: bool = False) -> list[str]:
    """Build with a cluster; return the paths of what was written."""
    opened = PlanJob(tree, options=OPTIONS).opened
    with open_workers(1) as executor, opened(executor, SILENT, source_date=SourceDate()) as (plan, _):
        place = SharedFolder(dest)
        place.prepare()
        with place.exchange() as exchange:
            settings = Settings(exchange, place.dist, 6, SourceDate(), worker_facts())
            return [one.path for one in build_wheels(plan, settings, cluster, SILENT, stage_all=stage_all)]


@pytest.mark.parametrize("stage_all", [False, True])
def test_a_cluster_build_has_the_same_bytes_as_a_local_build(tree: Path, tmp_path: Path, stage_all: bool) -> None:
    BuildJob(PlanJob(tree, options=OPTIONS), tmp_path / "local").run()
    written = build(tree, tmp_path / "there", PlainCluster(), stage_all=stage_all)
    assert digests(tmp_path / "there/dist") == digests(tmp_path / "local/dist")
    assert sorted(written) == sorted(str(path) for path in (tmp_path / "there/dist").glob("*.whl"))


def test_a_large_archive_of_compressed_kernels_is_stored_as_in_a_local_build(tmp_path: Path) -> None:
    """Its table gets smaller by deflate, so that samples of its bytes would say something else."""
    head = b"KPAK" + bytes(68) + b"\x28\xb5\x2f\xfd"
    data = head + random.Random(1).randbytes(48 << 20) + b"table of contents " * (16 << 16)
    archive = tmp_path / "in/blas_lib_generic/stage/.kpack/blas_gfx942.kpack"
    artifact(tmp_path / "in", "base_lib_generic", {"share/base.txt": b"base"})
    artifact(tmp_path / "in", "blas_lib_generic", {"lib/blas.txt": b"blas"})
    archive.parent.mkdir(parents=True)
    archive.write_bytes(data)
    BuildJob(PlanJob(tmp_path / "in", options=OPTIONS), tmp_path / "local").run()
    build(tmp_path / "in", tmp_path / "there", PlainCluster())
    assert digests(tmp_path / "there/dist") == digests(tmp_path / "local/dist")


def test_only_wheels_remain_in_the_output_folder(tree: Path, tmp_path: Path) -> None:
    build(tree, tmp_path / "there", PlainCluster(), stage_all=True)
    assert {path.suffix for path in (tmp_path / "there/dist").iterdir()} == {".whl"}


class Between(PlainCluster):
    """A cluster during whose work something happens, once: after its first job."""

    def __init__(self, happen: Callable[[], object]) -> None:
        super().__init__()
        self._happen: Callable[[], object] | None = happen

    def take(self) -> Answer:
        """Do a job."""
        answer = super().take()
        if self._happen:
            self._happen()
            self._happen = None
        return answer


def overwrite(file: Path) -> None:
    file.write_bytes(b"other")


def rename(file: Path) -> None:
    file.rename(file.with_name("away.txt"))


@pytest.mark.parametrize("change", [overwrite, rename])
def test_an_input_that_changes_during_the_build_is_reported_by_name(
    change: Callable[[Path], None], tree: Path, tmp_path: Path
) -> None:
    file = tree / "base_lib_generic/stage/share/base.txt"
    with pytest.raises(WorkError, match=r"share/base\.txt"):
        build(tree, tmp_path / "there", Between(lambda: change(file)))


def test_no_wheel_is_published_if_an_input_changed_unnoticed_by_the_workers(tree: Path, tmp_path: Path) -> None:
    """Size and time are as before, which is all that workers know of a file."""
    file = tree / "base_lib_generic/stage/share/base.txt"
    before = file.stat()

    def change() -> None:
        file.write_bytes(b"ESAB" * 9999)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(ChangedFileError, match=r"share/base\.txt: changed while it was being read"):
        build(tree, tmp_path / "there", Between(change))
    assert not [name for name in digests(tmp_path / "there/dist") if "core" in name]


def test_a_piece_that_differs_from_the_stored_piece_stops_the_build(tree: Path, tmp_path: Path) -> None:
    def damage() -> None:
        for piece in (tmp_path / "there/dist").glob(".exchange.*/pieces/*"):
            piece.write_bytes(piece.read_bytes()[:-1] + b"\0")

    with pytest.raises(WorkError, match=r"pieces/[0-9a-f]{32}: is not the piece that a worker stored"):
        build(tree, tmp_path / "there", Between(damage))
    assert len(digests(tmp_path / "there/dist")) < 2


def test_a_truncated_piece_stops_the_build(tree: Path, tmp_path: Path) -> None:
    def cut() -> None:
        for piece in (tmp_path / "there/dist").glob(".exchange.*/pieces/*"):
            piece.write_bytes(piece.read_bytes()[:-1])

    with pytest.raises(WorkError, match=r"pieces/[0-9a-f]{32}: is not the piece that a worker stored"):
        build(tree, tmp_path / "there", Between(cut))


def test_workers_that_cannot_write_to_the_exchange_are_reported_at_the_start(tree: Path, tmp_path: Path) -> None:
    cluster = PlainCluster()
    ask = cluster.ask

    def take_folder_away(function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        for pieces in (tmp_path / "there/dist").glob(".exchange.*/pieces"):
            pieces.rename(pieces.with_name("away"))
        return ask(function, *arguments)

    cluster.ask = take_folder_away  # type: ignore[method-assign]
    with pytest.raises(ProblemsError, match=r"(?s)one: can't use .*/\.exchange\.\w+\.rocwheel \(.*two: can't"):
        build(tree, tmp_path / "there", cluster)
    assert cluster.submitted == []


def test_a_file_that_changes_during_staging_is_reported_by_name(tree: Path, tmp_path: Path) -> None:
    file = tree / "base_lib_generic/stage/share/base.txt"
    cluster = PlainCluster()
    ask = cluster.ask

    def change_first(function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        file.write_bytes(b"other")
        return ask(function, *arguments)

    cluster.ask = change_first  # type: ignore[method-assign]
    with pytest.raises(ChangedFileError, match=r"share/base\.txt"):
        build(tree, tmp_path / "there", cluster, stage_all=True)
