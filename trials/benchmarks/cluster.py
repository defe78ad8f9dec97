"""``rocwheel build --scheduler`` on clusters of one and two workers of this machine, and what larger ones would take.

What each job costs is measured with one worker. The simulation has to foretell both runs before it is asked for more.
"""

from __future__ import annotations

import argparse
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deflate
import msgspec
from distributed import LocalCluster
from rich.filesize import decimal

from rocwheel.build.cluster.build_on_cluster import SharedFolder, build_wheels
from rocwheel.build.cluster.readers import connected
from rocwheel.build.cluster.tasks import Settings
from rocwheel.build.cluster.workers import Job, do_jobs, worker_facts
from rocwheel.build.job import PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.progress import SILENT
from rocwheel.core.workers import open_workers
from rocwheel.wheels.sdist import SourceDate
from trials.benchmarks.cluster_simulation import Costs, JobCost, repeated, simulate
from trials.benchmarks.measure import CACHE, folder_size, machine, markdown_table
from trials.benchmarks.tree import make_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.build.cluster.workers import Answer, Cluster

__all__ = ["main"]

_OUTPUT = CACHE / "bench-cluster"
_LEVEL = 6
_SMALL_JOBS = 300
_RELEASE = 100_000_000_000
_RELEASE_WORKERS = (1, 10, 100)
_MOST_OFF = 0.15
_HEADER = ("workers", "measured s", "foretold s", "off by", "jobs", "work of all workers s")
_SAMPLE = 48 << 20

# Most of Dask has no annotations.
_open_local: Any = LocalCluster


class _Done(NamedTuple):
    """A job that a worker has done."""

    is_assembly: bool
    wheel: int
    size: int
    seconds: float


class _Measured(NamedTuple):
    """A build: seconds from the first job to the last, and its jobs in the order in which they were submitted."""

    seconds: float
    jobs: list[_Done]
    dispatch: float


def main(arguments: list[str] | None = None) -> None:
    """Print both tables: the measured runs beside what the simulation foretells, and a release on larger clusters."""
    parser = argparse.ArgumentParser(prog="python -m trials.benchmarks.cluster", description=__doc__)
    parser.add_argument("--tree", type=Path, help="folder of artifacts (default: made from Debian's packages)")
    options = parser.parse_args(arguments or [])
    tree = options.tree or make_tree()
    size = folder_size(tree)
    slowdown = _slowdown()
    tree_size = f"{decimal(size)} of artifacts"
    print(f"{machine()}; {tree_size}; beside another, a core takes {slowdown:.2f} of its time alone\n")
    try:
        measured = {workers: _measure(tree, workers) for workers in (1, 2)}
    finally:
        shutil.rmtree(_OUTPUT, ignore_errors=True)
    costs = {workers: _costs(measured[1]).slower(slowdown if workers > 1 else 1) for workers in (1, 2)}
    print(markdown_table(_HEADER, [_row(workers, measured[workers], costs[workers]) for workers in (1, 2)]))
    _print_kinds(measured[1])
    _print_release(repeated(costs[2], round(_RELEASE / size)))


def _row(workers: int, measured: _Measured, costs: Costs) -> tuple[str, ...]:
    foretold = simulate(costs, workers)
    off = foretold / measured.seconds - 1
    note = "" if abs(off) <= _MOST_OFF else " (too much: was the machine idle?)"
    figures = (f"{measured.seconds:.1f}", f"{foretold:.1f}", f"{off:+.0%}{note}", str(len(measured.jobs)))
    return str(workers), *figures, f"{sum(job.seconds for job in measured.jobs):.1f}"


def _print_kinds(measured: _Measured) -> None:
    rows = []
    for name, is_assembly in (("packing", False), ("putting together", True)):
        jobs = [job for job in measured.jobs if job.is_assembly is is_assembly]
        seconds = sum(job.seconds for job in jobs)
        rate = decimal(int(sum(job.size for job in jobs) / seconds)) if seconds else ""
        rows.append((name, str(len(jobs)), f"{seconds:.1f}", f"{seconds / len(jobs):.2f}", rate))
    print()
    print(markdown_table(("job", "number", "s", "s each", "bytes of input or wheel a second"), rows))


def _print_release(costs: Costs) -> None:
    rows = []
    for workers in _RELEASE_WORKERS:
        seconds = simulate(costs, workers)
        busy = costs.work / (seconds * workers)
        rows.append((str(workers), f"{seconds / 60:.1f}", f"{costs.work / 3600:.1f}", f"{busy:.0%}"))
    print()
    header = ("workers", f"minutes for {decimal(_RELEASE)}", "hours of all workers together", "busy")
    print(markdown_table(header, rows), flush=True)


def _costs(measured: _Measured) -> Costs:
    packing = [JobCost(job.wheel, job.seconds) for job in measured.jobs if not job.is_assembly]
    assembly = {job.wheel: job.seconds for job in measured.jobs if job.is_assembly}
    return Costs(packing, assembly, measured.dispatch)


def _measure(tree: Path, workers: int) -> _Measured:
    """Build the packages of a tree on a cluster of processes with one thread each."""
    shutil.rmtree(_OUTPUT, ignore_errors=True)
    job = PlanJob(tree, options=PlanOptions(version="7.0"))
    with (
        _open_local(n_workers=workers, processes=True, threads_per_worker=1, dashboard_address=None) as local,
        connected(local.scheduler_address, lambda _: None, "the build") as connection,
        open_workers() as executor,
        job.opened(executor, SILENT, source_date=SourceDate()) as (plan, _),
    ):
        dispatch = _measure_dispatch(connection)
        cluster, place = _Recorder(connection), SharedFolder(_OUTPUT)
        place.prepare()
        with place.exchange() as exchange:
            settings = Settings(exchange, place.dist, _LEVEL, SourceDate(), worker_facts())
            begun = time.monotonic()
            build_wheels(plan, settings, cluster, SILENT)
            return _Measured(time.monotonic() - begun, cluster.in_order(), dispatch)


def _measure_dispatch(cluster: Cluster) -> float:
    """Return the seconds that a job takes which does nothing."""
    begun = time.monotonic()
    do_jobs(cluster, [Job(str(number), _nothing, ()) for number in range(_SMALL_JOBS)], lambda *_: ())
    return (time.monotonic() - begun) / _SMALL_JOBS


def _nothing() -> None:
    """Do nothing."""


class _Recorder:
    """A cluster that notes what each job takes on its worker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._count = 0
        self._done: dict[int, _Done] = {}
        self.address = cluster.address

    @property
    def capacity(self) -> int:
        """How many jobs keep all workers busy."""
        return self._cluster.capacity

    @property
    def under_way(self) -> int:
        """How many jobs were submitted whose answers were not taken."""
        return self._cluster.under_way

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker."""
        return self._cluster.ask(function, *arguments)

    def submit(self, job: Job) -> None:
        """Have some worker do a job, and look at its clock."""
        number = self._count
        self._count += 1
        timed = Job(job.name, _timed, (job.function, job.arguments), (number, job))
        self._cluster.submit(timed)

    def take(self) -> Answer:
        """Return the next answer, as it would have been without the clock."""
        answer = self._cluster.take()
        number, job = answer.job.tag
        if answer.error is not None or answer.has_lost_workers:
            return msgspec.structs.replace(answer, job=job)
        seconds, value = answer.value
        is_assembly = job.tag.unit < 0
        size = value.size if is_assembly else job.tag.size
        self._done[number] = _Done(is_assembly, job.tag.wheel, size, seconds)
        return msgspec.structs.replace(answer, job=job, value=value)

    def in_order(self) -> list[_Done]:
        """Return the jobs in the order in which they were submitted."""
        return [self._done[number] for number in sorted(self._done)]


def _timed(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[float, Any]:
    begun = time.monotonic()
    value = function(*arguments)
    return time.monotonic() - begun, value


def _slowdown() -> float:
    """Return how much longer the codec takes in each of two processes at a time than in one alone."""
    with ProcessPoolExecutor(2) as executor:
        list(executor.map(_deflate_sample, range(2)))  # to start them
        alone = executor.submit(_deflate_sample, 0).result()
        both = max(executor.map(_deflate_sample, range(2)))
    return both / alone


def _deflate_sample(_: int) -> float:
    sample = b"".join(b"%x %d\n" % (number * 2654435761, number) for number in range(_SAMPLE // 20))
    begun = time.monotonic()
    deflate.deflate_compress(sample, _LEVEL)
    return time.monotonic() - begun


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
