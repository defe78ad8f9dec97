"""A cluster without machines: jobs are done here, one at a time, when their answers are taken."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from rocwheel.build.cluster.workers import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocwheel.build.cluster.workers import Job

__all__ = ["DeadlyError", "PlainCluster"]


class DeadlyError(Exception):
    """What a job raises that ends its worker, and with it the other jobs that the worker has."""


class PlainCluster:
    """A cluster; `most` is how many jobs were under way at a time."""

    address = "tcp://plain"

    def __init__(self, capacity: int = 4, workers: tuple[str, ...] = ("one", "two")) -> None:
        self.capacity = capacity
        self.most = 0
        self.submitted: list[str] = []
        self._workers = workers
        self._jobs: deque[Job] = deque()
        self._answers: deque[Answer] = deque()

    @property
    def under_way(self) -> int:
        """How many jobs were submitted whose answers were not taken."""
        return len(self._jobs) + len(self._answers)

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function once for every worker."""
        return {worker: function(*arguments) for worker in self._workers}

    def submit(self, job: Job) -> None:
        """Take a job."""
        self.submitted.append(job.name)
        self._jobs.append(job)
        self.most = max(self.most, self.under_way)

    def take(self) -> Answer:
        """Do the oldest job, and return its answer."""
        if self._answers:
            return self._answers.popleft()
        job = self._jobs.popleft()
        try:
            return Answer(job, job.function(*job.arguments))
        except DeadlyError as e:
            self._answers += [Answer(other, error=e, has_lost_workers=True) for other in self._jobs]
            self._jobs.clear()
            return Answer(job, error=e, has_lost_workers=True)
        except Exception as e:
            return Answer(job, error=e)
