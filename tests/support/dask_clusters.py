"""Dask clusters of processes on this machine: a scheduler, and workers that may differ from one another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["DaskCluster", "dask_cluster", "started_cluster", "worker_environ"]

_DEADLINE = 300


class DaskCluster(NamedTuple):
    """A running cluster."""

    address: str
    folder: Path
    """Each worker's file ``worker-NUMBER.log`` is in it."""
    nannies: list[subprocess.Popen[bytes]]
    """The processes that start the workers, and start them again when they die."""

    scheduler: subprocess.Popen[bytes]

    def worker_pids(self) -> list[int]:
        """Return the processes that work now."""
        children = [pid for nanny in self.nannies for pid in _children(nanny.pid)]
        return [pid for pid in children if b"spawn_main" in _command_line(pid)]

    def kill_a_worker(self) -> None:
        """End one worker by SIGKILL; it can do nothing about that."""
        os.kill(self.worker_pids()[0], signal.SIGKILL)

    def kill_the_scheduler(self) -> None:
        """End the scheduler by SIGKILL."""
        self.scheduler.kill()


def _children(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in lists for child in text.split()]


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def started_cluster(
    folder: Path, environs: Sequence[Mapping[str, str]], scheduler_environ: Mapping[str, str] = MappingProxyType({})
) -> Iterator[DaskCluster]:
    """Run a scheduler, and a worker for each of ``environs``, the variables that it has more than this process."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "scheduler.json"
    processes: list[subprocess.Popen[bytes]] = []
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    try:
        command = ["dask_scheduler", *here, "--port", "0", "--scheduler-file", str(place)]
        processes.append(_started(command, folder / "scheduler.log", scheduler_environ))
        _wait_until(lambda: bool(_address_in(place)))
        address = _address_in(place)
        for number, environ in enumerate(environs):
            command = ["dask_worker", address, *here, "--nthreads", "1", "--local-directory", str(folder)]
            processes.append(_started(command, folder / f"worker-{number}.log", environ))
        cluster = DaskCluster(address, folder, processes[1:], processes[0])
        _wait_until(lambda: _count_workers(cluster) == len(environs))
        yield cluster
    finally:
        # Asked to end, they wait for one another.
        for process in processes[::-1]:
            _kill(process)


def _address_in(scheduler_file: Path) -> str:
    """Return the address that a scheduler has written to its file, none before it is whole."""
    with suppress(OSError, ValueError):
        return str(json.loads(scheduler_file.read_text())["address"])
    return ""


def _started(command: Sequence[str], log: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    module, *arguments = command
    words = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
    with log.open("wb") as file:
        return subprocess.Popen(words, stdout=file, stderr=file, env={**os.environ, **environ})


def _count_workers(cluster: DaskCluster) -> int:
    logs = [cluster.folder / f"worker-{number}.log" for number in range(len(cluster.nannies))]
    return sum(b"Registered to" in log.read_bytes() for log in logs)


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _DEADLINE
    while not is_so():
        assert time.monotonic() < end, "the cluster doesn't start"
        time.sleep(0.05)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.send_signal(signal.SIGSTOP)  # so that it begins no worker anew
        for pid in _children(process.pid):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


def worker_environ(folder: Path, program: str) -> dict[str, str]:
    """Return the variables of a worker that runs ``program`` first, before anything else of it is imported."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(program)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Return a cluster of three workers for all tests of a module that don't break it for good.

    It ends with the module: idle, its seven processes would take a part of a processor from all other tests.
    """
    with started_cluster(tmp_path_factory.mktemp("dask"), [{}, {}, {}]) as cluster:
        yield cluster
