"""The seam to a cluster: jobs go to its workers, small answers come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

__all__ = ["Answer", "Cluster", "Job"]


class Job(msgspec.Struct, frozen=True):
    """A call of a function of a module, with arguments that pickle can copy.

    It may be done twice, also at the same time: where a worker is lost, or was only thought to be.
    """

    name: str
    """What it works on, for messages."""
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    tag: Any = None
    """What whoever submits it knows it by; it stays on this machine."""
    parts: tuple[Job, ...] = ()
    """Jobs that do the same together, each with less input; none for one that can't be divided."""


class Answer(msgspec.Struct, frozen=True):
    """What became of a job: its value, the error that it raised, or the workers that died of it."""

    job: Job
    value: Any = None
    error: BaseException | None = None
    has_lost_workers: bool = False
    """Whether workers died while they had it, as often as the scheduler allows; others may be to blame."""


class Cluster(Protocol):
    """Workers of several machines. An answer is kept nowhere once it was taken."""

    @property
    def address(self) -> str:
        """Where the scheduler is, as messages show it."""

    @property
    def capacity(self) -> int:
        """How many jobs keep all workers busy, with a few that wait."""

    @property
    def under_way(self) -> int:
        """How many jobs were submitted whose answers were not taken."""

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker; return what it returned, or the exception that it raised, by worker.

        A worker that is lost meanwhile has no answer. Raises `WorkError` where there is no worker.
        """

    def submit(self, job: Job) -> None:
        """Have some worker do a job."""

    def take(self) -> Answer:
        """Wait for the next job that is done, and return its answer.

        Raises `WorkError` when the scheduler or all workers are gone.
        """
