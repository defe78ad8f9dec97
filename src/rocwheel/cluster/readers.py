"""Workers of a cluster as readers of many files, which they have under the same paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rocwheel.cluster.access import check_files
from rocwheel.cluster.seam import Job
from rocwheel.cluster.versions import WorkerFacts, require_like, worker_facts
from rocwheel.cluster.work import do_jobs
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileStamp
from rocwheel.core.remote_placeholders import shown, source_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.cluster.seam import Cluster
    from rocwheel.core.workers import Told

__all__ = ["ClusterReaders"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_JOB = 64 << 20
"""Bytes that a worker reads, unpacks and hashes in some tenths of a second."""
_LEAST = 128 << 10
"""What an item counts at least."""


class ClusterReaders:
    """See `rocwheel.core.workers.Readers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], Told]
    ) -> Iterator[Result]:
        """Yield what ``function`` returns for each item, in their order, when all were read.

        Raises `AccessError` for a worker that lacks a file, `InputError` for a file that is at a URL.
        """
        told = [tell(item) for item in items]
        self._check({one.path for one in told})
        results: dict[int, Result] = {}

        def take(job: Job, values: Sequence[Result]) -> tuple[Job, ...]:
            results.update(enumerate(values, job.tag))
            return ()

        do_jobs(self._cluster, self._jobs(function, items, told), take)
        return (results[number] for number in range(len(items)))

    def _check(self, paths: set[str]) -> None:
        for path in paths:
            if source_at(path):
                found, remedy = "is at a URL, which workers don't read", "Leave --scheduler out, or fetch it first."
                raise InputError(shown(path), found, remedy=remedy)
        stamps = {path: FileStamp.at(Path(path)) for path in paths}
        check_files(self._cluster, stamps, remedy="Give the worker that folder under the same path.")

    def _jobs(self, function: Callable[[Item], Result], items: Sequence[Item], told: Sequence[Told]) -> Iterator[Job]:
        facts = worker_facts()
        for first, stop in _groups([one.size for one in told]):
            parts = tuple(
                Job(told[number].name, _read, (facts, function, (items[number],)), number)
                for number in range(first, stop)
            )
            if len(parts) == 1:
                yield parts[0]
            else:
                name = f"{told[first].name} and {count(len(parts) - 1, 'more file')}"
                yield Job(name, _read, (facts, function, tuple(items[first:stop])), first, parts)


def _groups(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where the items of each job begin and end."""
    first = total = 0
    for number, size in enumerate(sizes):
        counted = max(size, _LEAST)
        if number > first and total + counted > _JOB:
            yield first, number
            first, total = number, 0
        total += counted
    if sizes:
        yield first, len(sizes)


def _read(facts: WorkerFacts, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    require_like(facts)
    return [function(item) for item in items]
