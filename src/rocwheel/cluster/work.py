"""Doing many jobs on a cluster: never many more than it can take, and to the end even where workers are lost."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn

from rocwheel.core.errors import RocwheelError, WorkError, limit_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rocwheel.cluster.seam import Answer, Cluster, Job

__all__ = ["PoisonedJobError", "do_jobs"]


class PoisonedJobError(WorkError):
    """A job during which every worker died that began it."""


def do_jobs(cluster: Cluster, jobs: Iterable[Job], take: Callable[[Job, Any], Iterable[Job]]) -> None:
    """Have the workers do all jobs; ``take`` gets each with its value, and returns jobs that can begin now.

    Jobs are asked for as workers become free. Raises what a job raises, and `PoisonedJobError`. Workers die for many
    reasons, and a scheduler suspects every job that they had: the suspects, in the smallest parts, are done one after
    the other in the end. So the one that is named is to blame.
    """
    suspects: deque[Job] = deque()
    for job in jobs:
        while cluster.under_way >= cluster.capacity:
            _settle(cluster, cluster.take(), take, suspects)
        cluster.submit(job)
    while cluster.under_way or suspects:
        if not cluster.under_way:
            cluster.submit(suspects.popleft())
            _settle(cluster, cluster.take(), take, None)
        else:
            _settle(cluster, cluster.take(), take, suspects)


def _settle(
    cluster: Cluster, answer: Answer, take: Callable[[Job, Any], Iterable[Job]], suspects: deque[Job] | None
) -> None:
    if answer.has_lost_workers:
        if suspects is None:
            _refuse(cluster, answer.job)
        suspects += answer.job.parts or (answer.job,)
    elif answer.error is not None:
        raise _as_error(answer.job, answer.error)
    else:
        for job in take(answer.job, answer.value):
            cluster.submit(job)


def _as_error(job: Job, error: BaseException) -> BaseException:
    """Return an error that names what the job worked on, whatever went wrong on the worker."""
    if isinstance(error, RocwheelError):
        return error
    found = f"can't be worked on by a worker ({type(error).__name__}: {error})"
    return WorkError(job.name, found, remedy=limit_remedy(error) or "See the worker's log.")


def _refuse(cluster: Cluster, job: Job) -> NoReturn:
    found = f"ends every worker of {cluster.address} that works on it"
    remedy = "Look into the workers' logs, and give them more memory or take the file out."
    raise PoisonedJobError(job.name, found, remedy=remedy)
