"""Builds on clusters of processes: the bytes of a local build, whatever becomes of workers."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import WorkError
from rocwheel.demo import SAMPLE_SDK, SAMPLE_WINDOWS
from rocwheel.stores.open import open_store
from tests.support.artifacts import artifact
from tests.support.command_line import rocwheel
from tests.support.dask_clusters import started_cluster, worker_environ
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.dask_clusters import DaskCluster
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow

MIB = 1 << 20

FORBIDDING = """
import io, os
FOLDER = {folder!r}
real_os_open, real_io_open = os.open, io.open

def check(path):
    if str(path).startswith(FOLDER):
        raise PermissionError(13, "Permission denied", str(path))

def os_open(path, *more, **named):
    check(path)
    return real_os_open(path, *more, **named)

def io_open(path, *more, **named):
    check(path)
    return real_io_open(path, *more, **named)

os.open, io.open = os_open, io_open
"""
"""What keeps a worker from opening the files of a folder, as one does that has no such folder."""

POISONED = """
import os, signal
before = os.open

def deadly_open(path, *more, **named):
    if str(path).endswith("poison.txt"):
        os.kill(os.getpid(), signal.SIGKILL)
    return before(path, *more, **named)

os.open = deadly_open
"""
"""What ends a worker that reads a file of this name, as one does that has too little memory."""


DYING = """
import lzma, os, signal
before = lzma.compress

def compress(*more, **named):
    if not os.path.exists({mark!r}):
        open({mark!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return before(*more, **named)

lzma.compress = compress
"""
"""What ends a worker once, at the first sample that it compresses: when versions are compared."""


def digests(folder: Path) -> dict[str, str]:
    found = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return artifacts that take a cluster some seconds: fifteen texts, a file that is cut, and a packed artifact."""
    folder = tmp_path_factory.mktemp("tree")
    source = random.Random(3)
    text = b"".join(b"%d %x\n" % (source.randrange(1 << 16), source.randrange(1 << 40)) for _ in range(400_000))
    stage = artifact(folder / "in", "base_lib_generic", {"share/base.txt": b"base"})
    for number in range(15):
        (stage / f"share/text-{number}").write_bytes(text[number * 1000 :])
    with (stage / "share/large").open("wb") as file:
        file.write(text)
        file.truncate(150 * MIB)  # holes are quick to pack
    artifact(folder / "plain", "blas_lib_generic", {"lib/blas.txt": text[:999_999], "lib/empty": b""})
    done = rocwheel("artifacts", "archive", folder / "plain", "--output", folder / "in")
    assert done.returncode == 0, done.stderr
    return folder / "in"


@pytest.fixture(scope="module")
def local(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the digests of what a local build makes of the tree."""
    folder = tmp_path_factory.mktemp("local")
    done = rocwheel("build", "--artifact-dir", tree, "--dest-dir", folder, "--version", "7.0")
    assert done.returncode == 0, done.stderr
    return digests(folder / "dist")


def build(tree: Path, dest: Path | str, scheduler: str) -> subprocess.Popen[str]:
    """Begin a build on a cluster."""
    command = ["build", "--artifact-dir", str(tree), "--dest-dir", str(dest), "--version", "7.0", "--scheduler"]
    words = [sys.executable, "-m", "rocwheel", *command, scheduler]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(find: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not find():
        time.sleep(0.02)
    assert process.poll() is None, "it has ended too early"


def has_pieces(dest: Path) -> bool:
    """Return whether workers have packed something; they have also made empty pieces, to see whether they can."""
    return any(path.stat().st_size for path in dest.glob("dist/.exchange.*/pieces/*"))


def test_a_cluster_builds_the_same_windows_packages(dask_cluster: DaskCluster, tmp_path: Path) -> None:
    words = ["build", "--artifact-dir", str(SAMPLE_WINDOWS), "--device-code", "compress", "--dest-dir"]
    assert rocwheel(*words, tmp_path / "local").returncode == 0
    done = rocwheel(*words, tmp_path / "cluster", "--scheduler", dask_cluster.address)
    assert done.returncode == 0, done.stderr
    found = digests(tmp_path / "cluster/dist")
    assert found == digests(tmp_path / "local/dist")
    assert "rocm_sdk_core-7.0.0-py3-none-win_amd64.whl" in found


@pytest.mark.deep
def test_a_cluster_builds_the_same_bytes_as_a_local_build(
    sample_dist: Path, dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    place = ["--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(tmp_path)]
    done = rocwheel("build", *place, "--scheduler", dask_cluster.address)
    assert (done.returncode, digests(tmp_path / "dist")) == (0, digests(sample_dist)), done.stderr
    assert "All workers run on this machine: the build would be faster without --scheduler." in done.stderr
    assert [path.name for path in (tmp_path / "dist").iterdir() if path.name.startswith(".")] == []


@pytest.mark.deep
def test_killing_a_worker_does_not_change_any_byte(
    tree: Path, local: dict[str, str], dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    process = build(tree, tmp_path, dask_cluster.address)
    wait_for(lambda: has_pieces(tmp_path), process)
    dask_cluster.kill_a_worker()
    _, told = process.communicate()
    assert (process.returncode, digests(tmp_path / "dist")) == (0, local), told


@pytest.mark.deep
def test_the_next_build_removes_everything_that_a_killed_build_left(
    tree: Path, local: dict[str, str], dask_cluster: DaskCluster, tmp_path: Path
) -> None:
    process = build(tree, tmp_path, dask_cluster.address)
    wait_for(lambda: has_pieces(tmp_path), process)
    process.kill()
    process.communicate()
    assert list(tmp_path.glob("dist/*.whl")) == []
    process = build(tree, tmp_path, dask_cluster.address)
    _, told = process.communicate()
    assert (process.returncode, digests(tmp_path / "dist")) == (0, local), told
    assert list(tmp_path.glob("dist/.*.rocwheel")) == []


@pytest.mark.deep
def test_machines_need_to_share_only_a_store(tree: Path, local: dict[str, str], s3: S3Server, tmp_path: Path) -> None:
    alone = worker_environ(tmp_path / "alone", FORBIDDING.format(folder=str(tree.parent)))
    with started_cluster(tmp_path / "cluster", [{**s3.environ, **alone} for _ in range(3)]) as cluster:
        process = build(tree, f"s3://{BUCKET}/rocm", cluster.address)
        store = open_store(f"s3://{BUCKET}/rocm")
        wait_for(lambda: [file for file in store.list() if "/pieces/" in file.name and file.size], process)
        cluster.kill_a_worker()
        out, told = process.communicate()
    assert process.returncode == 0, told
    assert f"s3://{BUCKET}/rocm/dist/rocm-7.0.tar.gz" in out
    found = {file.name: hashlib.sha256(store.read(file.name)).hexdigest() for file in store.list()}
    assert {"SHA256SUMS", "rocwheel-build.json"} <= found.keys()
    in_dist = {name: digest for name, digest in found.items() if name not in {"SHA256SUMS", "rocwheel-build.json"}}
    assert in_dist == {f"dist/{name}": digest for name, digest in local.items()}


def heavy_tree(folder: Path, size: int) -> Path:
    """Make artifacts of about ``size`` bytes that can't be deflated, in files that are packed whole and in parts."""
    piece = random.Random(5).randbytes(MIB)
    for name in ("base", "blas"):
        artifact(folder, f"{name}_lib_generic", {f"share/{name}.txt": b"small"})
    stage = folder / "base_lib_generic/stage/share"
    large = size * 2 // 3
    for name, count in (("large", large), *((f"file-{number}", (size - large) // 4) for number in range(4))):
        with (stage / name).open("wb") as file:
            for _ in range(count // MIB):
                file.write(piece)
    return folder


def measured_build(tree: Path, dest: Path | str, scheduler: str) -> int:
    """Build on a cluster and return the memory that this took of the process here at most, in bytes."""
    most = 0
    with build(tree, dest, scheduler) as process:
        while process.poll() is None:
            most = max(most, most_resident(process.pid))
            time.sleep(0.02)
        assert process.returncode == 0, process.stderr and process.stderr.read()
    return most


def most_resident(pid: int) -> int:
    """Return the most memory that a process has had, in bytes; 0 once it has ended.

    VmHWM, not ru_maxrss: that one begins with the size of the process that this one was forked from.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


@pytest.mark.deep
def test_the_bytes_of_a_build_do_not_pass_through_this_machine(dask_cluster: DaskCluster, tmp_path: Path) -> None:
    tree = heavy_tree(tmp_path / "in", 300 * MIB)
    assert measured_build(tree, tmp_path / "out", dask_cluster.address) < 150 * MIB
    assert sum(path.stat().st_size for path in (tmp_path / "out/dist").iterdir()) > 290 * MIB


@pytest.mark.corpus
def test_the_bytes_of_a_large_build_do_not_pass_through_this_machine(dask_cluster: DaskCluster, tmp_path: Path) -> None:
    tree = heavy_tree(tmp_path / "in", 2300 * MIB)
    assert measured_build(tree, tmp_path / "out", dask_cluster.address) < 150 * MIB
    assert sum(path.stat().st_size for path in (tmp_path / "out/dist").iterdir()) > 2290 * MIB


@pytest.mark.corpus
def test_inputs_pass_through_this_machine_in_small_parts(s3: S3Server, tmp_path: Path) -> None:
    tree = heavy_tree(tmp_path / "in", 250 * MIB)
    with started_cluster(tmp_path / "cluster", [s3.environ]) as cluster:
        assert measured_build(tree, f"s3://{BUCKET}/heavy", cluster.address) < 150 * MIB


@pytest.fixture(scope="module")
def odd_cluster(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Return a cluster that ends workers soon, with one worker that can't read the tree."""
    folder = tmp_path_factory.mktemp("odd")
    program = FORBIDDING.format(folder=str(tree)) + POISONED
    fails_soon = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    environs = [worker_environ(folder / "one", program), worker_environ(folder / "two", POISONED)]
    with started_cluster(folder / "cluster", environs, fails_soon) as cluster:
        yield cluster


@pytest.mark.deep
def test_a_worker_without_access_to_an_input_is_reported_before_building(
    tree: Path, odd_cluster: DaskCluster, tmp_path: Path
) -> None:
    process = build(tree, tmp_path, odd_cluster.address)
    _, told = process.communicate()
    assert process.returncode == 1, told
    file = tree / "base_lib_generic/stage/share/base.txt"
    assert f"can't use {file} (Permission denied), " in told
    assert "tcp://127.0.0.1:" in told
    assert not (tmp_path / "dist").exists()


@pytest.mark.deep
def test_an_input_that_kills_every_worker_is_reported_by_name(odd_cluster: DaskCluster, tmp_path: Path) -> None:
    files = {"share/base.txt": b"base", "share/poison.txt": b"poison", "share/other.txt": b"other"}
    artifact(tmp_path / "in", "base_lib_generic", files)
    artifact(tmp_path / "in", "blas_lib_generic", {"lib/blas.txt": b"blas"})
    process = build(tmp_path / "in", tmp_path / "out", odd_cluster.address)
    _, told = process.communicate()
    assert process.returncode == 1, told
    assert "base_lib_generic: share/poison.txt: kills every worker of tcp://127.0.0.1:" in told
    assert list((tmp_path / "out/dist").glob("*core*")) == []


@pytest.mark.deep
def test_workers_with_another_version_are_refused(tmp_path: Path) -> None:
    other = worker_environ(tmp_path / "other", "import rocwheel\nrocwheel.__version__ = '0.0.9'\n")
    with started_cluster(tmp_path / "cluster", [other]) as cluster:
        process = build(SAMPLE_SDK, tmp_path / "out", cluster.address)
        _, told = process.communicate()
    assert (process.returncode, ": has rocwheel 0.0.9; expected rocwheel " in told) == (1, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.deep
def test_losing_a_worker_during_the_version_check_does_not_stop_the_build(tmp_path: Path) -> None:
    mark = tmp_path / "died"
    dying = worker_environ(tmp_path / "dying", DYING.format(mark=str(mark)))
    with started_cluster(tmp_path / "cluster", [dying, {}]) as cluster:
        process = build(SAMPLE_SDK, tmp_path / "out", cluster.address)
        _, told = process.communicate()
    assert (process.returncode, mark.exists()) == (0, True), told
    assert len(list(tmp_path.glob("out/dist/*.whl"))) > 5


@pytest.mark.deep
def test_losing_the_scheduler_during_the_build_is_reported_in_one_line(tree: Path, tmp_path: Path) -> None:
    with started_cluster(tmp_path / "cluster", [{}]) as cluster:
        process = build(tree, tmp_path, cluster.address)
        wait_for(lambda: has_pieces(tmp_path), process)
        cluster.kill_the_scheduler()
        _, told = process.communicate()
    assert process.returncode == 1, told
    assert told.splitlines()[-1].startswith(f"error: {cluster.address}: has stopped or has lost the jobs. "), told
    assert "Traceback" not in told
    assert "distributed" not in told


def test_losing_the_scheduler_during_the_worker_checks_is_reported() -> None:
    class LostClient:
        scheduler = SimpleNamespace(address="tcp://lost:1")

        def run(self, *_: object, **__: object) -> None:
            message = "in <rpc>: Stream is closed"
            raise OSError(message)

    module = pytest.importorskip("rocwheel.build.cluster.dask_cluster")
    with pytest.raises(WorkError, match=r"^tcp://lost:1: has stopped or has lost the jobs"):
        module.DaskCluster(LostClient()).ask(len)


def test_a_scheduler_without_workers_is_refused(tmp_path: Path) -> None:
    with started_cluster(tmp_path / "cluster", []) as cluster:
        done = rocwheel("build", "--artifact-dir", SAMPLE_SDK, "--dest-dir", tmp_path, "--scheduler", cluster.address)
    assert (done.returncode, f"{cluster.address}: has no workers. Start workers, " in done.stderr) == (2, True)


IMPATIENT = """
from rocwheel.cli import main
from rocwheel.build.cluster import dask_cluster
dask_cluster._TIMEOUT = 1
main()
"""
"""The command, which else tries for ten seconds."""


@pytest.mark.deep
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://", "just-a-name"])
def test_an_unreachable_scheduler_is_an_error(address: str, tmp_path: Path) -> None:
    words = ["build", "--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(tmp_path), "--scheduler", address]
    done = subprocess.run([sys.executable, "-c", IMPATIENT, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, f"{address}: can't be reached (" in done.stderr, "Traceback" in done.stderr) == (
        2,
        True,
        False,
    ), done.stderr


def test_a_local_build_cannot_write_to_a_url() -> None:
    done = rocwheel("build", "--artifact-dir", SAMPLE_SDK, "--dest-dir", "s3://bucket/x")
    told = "error: s3://bucket/x: is a URL, but this command can't write to URLs. "
    assert (done.returncode, told in done.stderr) == (2, True)


@pytest.mark.parametrize("dest", ["https://example.org/x", "s3://", "ftp://host/x"])
def test_an_unsupported_destination_is_refused(dest: str) -> None:
    done = rocwheel("build", "--artifact-dir", SAMPLE_SDK, "--dest-dir", dest, "--scheduler", "tcp://127.0.0.1:1")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
