"""Connects to a cluster, and uses its workers to read many files. The files must have the same paths on the workers."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rocwheel.build.cluster.workers import (
    Job,
    WorkerFacts,
    are_all_here,
    check_access,
    check_workers,
    do_jobs,
    require_like,
    worker_facts,
)
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileStamp
from rocwheel.core.remote_file import source_of
from rocwheel.core.workers import iter_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.core.workers import ReadContext, Readers


_DASK = ("dask", "distributed", "tornado")


@contextmanager
def connected(scheduler: str, warn: Callable[[str], object], work: str) -> Iterator[Cluster]:
    """Yield the cluster of a Dask scheduler.

    ``scheduler`` is the address, or the scheduler file that contains the address.

    Cancels pending jobs at the end of the block. ``warn`` receives a warning if this machine would do the ``work``
    faster without the cluster. Raises `InputError` if the cluster can't be reached or has no workers, `VersionError` or
    `ProblemsError` if workers would not produce the same bytes, and `WorkError` if Dask is missing.
    """
    try:
        from rocwheel.build.cluster.dask_cluster import opened
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in _DASK:
            raise
        found = f"needs the distributed library, which is not installed ({e})"
        raise WorkError(scheduler, found, remedy="Install it: pip install 'rocwheel[dask]'.") from e
    with opened(scheduler) as cluster:
        answers = cluster.ask(worker_facts)
        check_workers(answers)
        if are_all_here(answers):
            warn(f"All workers run on this machine: {work} would be faster without --scheduler.")
        yield cluster


def shared_paths(scheduler: str | None, paths: Sequence[Path]) -> list[Path]:
    """Return absolute paths that other machines can also use, or the unchanged paths if there is no scheduler.

    Workers have their own working directories, so a relative path would refer to a different file. Raises `InputError`
    for a URL.
    """
    if scheduler is not None and (remote := next(filter(source_of, paths), None)):
        found, remedy = "is a URL, which workers can't read", "Omit --scheduler, or download the file first."
        raise InputError(remote, found, remedy=remedy)
    return [path if scheduler is None else path.absolute() for path in paths]


@contextmanager
def reading(scheduler: str | None, warn: Callable[[str], object]) -> Iterator[Readers | None]:
    """Yield a scheduler's workers as file readers, or `None` if there is no scheduler.

    ``warn`` receives messages for the user. Raises the same errors as `connected`.
    """
    if scheduler is None:
        yield None
        return
    with connected(scheduler, warn, "reading") as cluster:
        yield ClusterReaders(cluster)


Item = TypeVar("Item")
Result = TypeVar("Result")

_JOB = 64 << 20
"""The number of bytes that a worker reads, unpacks, and hashes in a few tenths of a second."""
_LEAST = 128 << 10
"""The minimum cost of an item in bytes."""


class ClusterReaders:
    """Implements `rocwheel.core.workers.Readers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], ReadContext]
    ) -> Iterator[Result]:
        """Yield the result of ``function`` for each item, in order, after all items are processed.

        Raises `AccessError` if a worker can't read a file.
        """
        contexts = [tell(item) for item in items]
        paths = {one.path for one in contexts}
        stamps = {path: FileStamp.at(Path(path)) for path in paths}
        check_access(self._cluster, stamps, remedy="Make that folder available to the worker at the same path.")
        results: dict[int, Result] = {}

        def take(job: Job, values: Sequence[Result]) -> tuple[Job, ...]:
            results.update(enumerate(values, job.tag))
            return ()

        do_jobs(self._cluster, _jobs(function, items, contexts), take)
        return (results[number] for number in range(len(items)))


def _jobs(function: Callable[[Item], Result], items: Sequence[Item], contexts: Sequence[ReadContext]) -> Iterator[Job]:
    facts = worker_facts()
    for group in iter_batches(range(len(items)), lambda number: max(contexts[number].size, _LEAST), _JOB):
        parts = tuple(
            Job(contexts[number].name, _read, (facts, function, (items[number],)), number) for number in group
        )
        if len(parts) == 1:
            yield parts[0]
        else:
            name = f"{parts[0].name} and {count(len(parts) - 1, 'more file')}"
            yield Job(name, _read, (facts, function, tuple(items[number] for number in group)), group[0], parts)


def _read(facts: WorkerFacts, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    require_like(facts)
    return [function(item) for item in items]
