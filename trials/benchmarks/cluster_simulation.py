"""How long a build on a cluster takes by what each of its jobs costs: a simulation of how they are handed out."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Costs", "JobCost", "repeated", "simulate"]

_JOBS_PER_WORKER = 3
"""As `rocwheel.build.cluster.dask_cluster` has it."""


@dataclass(frozen=True, slots=True)
class JobCost:
    """A job that packs: the wheel that it is for, and the seconds that a worker takes."""

    wheel: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What a build costs: its packing jobs in their order, and the seconds that putting each wheel together takes."""

    packing: Sequence[JobCost]
    assembly: Mapping[int, float]
    dispatch: float
    """Seconds that client and scheduler need for a job; they do one after the other."""

    @property
    def work(self) -> float:
        """The seconds of all workers together."""
        return sum(job.seconds for job in self.packing) + sum(self.assembly.values())

    def slower(self, factor: float) -> Costs:
        """Return the costs of workers that take ``factor`` times as long."""
        packing = [JobCost(job.wheel, job.seconds * factor) for job in self.packing]
        return Costs(packing, {wheel: cost * factor for wheel, cost in self.assembly.items()}, self.dispatch)


def repeated(costs: Costs, times: int) -> Costs:
    """Return the costs of a build that has everything ``times`` times, in wheels of their own."""
    step = max(costs.assembly) + 1
    packing = [JobCost(job.wheel + step * copy, job.seconds) for copy in range(times) for job in costs.packing]
    assembly = {wheel + step * copy: cost for copy in range(times) for wheel, cost in costs.assembly.items()}
    return Costs(packing, assembly, costs.dispatch)


def simulate(costs: Costs, workers: int) -> float:
    """Return the seconds that a build takes with this many workers of one thread.

    As `rocwheel.build.cluster.workers.do_jobs` does it, a few jobs for each worker are under way, in their order; the
    one that puts a wheel together is submitted when the last that packs for it is done.
    """
    return _Simulation(costs, workers).run()


class _Simulation:
    def __init__(self, costs: Costs, workers: int) -> None:
        self._costs = costs
        self._left = Counter(job.wheel for job in costs.packing)
        self._ready = deque(costs.packing)
        self._submitted: deque[tuple[float, float, int]] = deque()
        """When a job is there for a worker, its seconds, and its wheel, or -1 for one that puts a wheel together."""
        self._running: list[tuple[float, int]] = []
        """When a job ends, and its wheel or -1."""
        self._free = [0.0] * workers
        self._capacity = workers * _JOBS_PER_WORKER
        self._client = 0.0
        """When client and scheduler are done with what they have."""

    def run(self) -> float:
        clock = 0.0
        while self._ready or self._submitted or self._running:
            self._submit_ready(clock)
            self._begin()
            if self._running:
                clock, wheel = heapq.heappop(self._running)
                heapq.heappush(self._free, clock)
                self._finish(clock, wheel)
        return clock

    def _submit_ready(self, clock: float) -> None:
        while self._ready and len(self._submitted) + len(self._running) < self._capacity:
            job = self._ready.popleft()
            self._submit(clock, job.seconds, job.wheel)

    def _submit(self, clock: float, seconds: float, wheel: int) -> None:
        self._client = max(self._client, clock) + self._costs.dispatch
        self._submitted.append((self._client, seconds, wheel))

    def _begin(self) -> None:
        while self._submitted and self._free:
            there, seconds, wheel = self._submitted.popleft()
            begun = max(there, heapq.heappop(self._free))
            heapq.heappush(self._running, (begun + seconds, wheel))

    def _finish(self, clock: float, wheel: int) -> None:
        if wheel < 0:
            return
        self._left[wheel] -= 1
        if not self._left[wheel]:
            self._submit(clock, self._costs.assembly[wheel], -1)
