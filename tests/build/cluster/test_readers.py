"""Tests of `rocwheel.build.cluster.readers`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.cluster.readers import ClusterReaders, shared_paths
from rocwheel.build.cluster.workers import AccessError, PoisonedJobError
from rocwheel.core.errors import InputError
from rocwheel.core.remote_file import make_remote
from rocwheel.core.workers import ReadContext
from tests.build.cluster.clusters import DeadlyError, PlainCluster

if TYPE_CHECKING:
    from collections.abc import Callable


MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"file-{number}" for number in range(5)]
    for path in paths:
        path.write_text(path.name)
    return paths


def read(path: Path) -> str:
    if path.name == "file-3":
        return f"<{path.name}>"
    return path.read_text()


def deadly(path: Path) -> str:
    if path.name == "file-3":
        raise DeadlyError
    return path.read_text()


def telling(size: int) -> Callable[[Path], ReadContext]:
    return lambda path: ReadContext(path.name, size, str(path))


def test_results_are_returned_in_order(files: list[Path]) -> None:
    found = ClusterReaders(PlainCluster()).map(read, files, telling(1))
    assert list(found) == ["file-0", "file-1", "file-2", "<file-3>", "file-4"]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, ["file-0 and 4 more files"]),
        (32 * MIB, ["file-0 and 1 more file", "file-2 and 1 more file", "file-4"]),
        (200 * MIB, ["file-0", "file-1", "file-2", "file-3", "file-4"]),
    ],
)
def test_a_job_has_files_of_64_mib_in_total_or_a_single_file(files: list[Path], size: int, expected: list[str]) -> None:
    cluster = PlainCluster()
    ClusterReaders(cluster).map(read, files, telling(size))
    assert cluster.submitted == expected


def test_a_file_that_kills_every_worker_is_reported_by_name(files: list[Path]) -> None:
    with pytest.raises(PoisonedJobError, match=r"^file-3: kills every worker"):
        ClusterReaders(PlainCluster()).map(deadly, files, telling(1))


def test_reading_no_files_returns_nothing() -> None:
    assert list(ClusterReaders(PlainCluster()).map(read, [], telling(1))) == []


class Elsewhere(PlainCluster):
    """A cluster whose second worker lacks a file."""

    def ask(self, function: Callable[..., object], *arguments: object) -> dict[str, object]:
        """Let the second worker look when the file is gone."""
        first = function(*arguments)
        assert isinstance(arguments[0], list)
        Path(arguments[0][-1][0]).unlink()
        return {"tcp://one": first, "tcp://two": function(*arguments)}


def test_a_worker_without_access_to_a_file_is_reported_before_reading(files: list[Path]) -> None:
    cluster = Elsewhere()
    with pytest.raises(AccessError) as caught:
        ClusterReaders(cluster).map(read, files, telling(1))
    assert str(caught.value) == (
        f"tcp://two: can't use {files[4]} (No such file or directory). Make that folder "
        "available to the worker at the same path."
    )
    assert cluster.submitted == []


def test_a_file_at_a_url_is_refused(tmp_path: Path) -> None:
    class Source:
        size = 3

        def read(self, start: int, stop: int) -> bytes:
            return b"abc"[start:stop]

        def prefetch(self, ranges: object) -> None:
            """Do nothing."""

    path = make_remote(tmp_path / "x.whl", Source())
    with pytest.raises(InputError) as caught:
        shared_paths("tcp://host", [path])
    assert (
        str(caught.value)
        == f"{path}: is a URL, which workers can't read. Omit --scheduler, or download the file first."
    )
