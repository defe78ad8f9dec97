"""Work that an executor does ahead of the thread that takes its results in order, within a budget of memory."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

__all__ = ["Schedule"]


class Schedule:
    """Submits tasks and delivers what they return in the order in which they were added.

    Each comes with its cost, in bytes; those that are submitted and not delivered come to ``budget`` at most, or are
    one alone.
    """

    def __init__(self, executor: Executor, budget: int) -> None:
        self.executor = executor
        self._budget = budget
        self._pending: deque[tuple[Future[Any] | None, int, Callable[[Any], object]]] = deque()
        self._in_flight = 0

    def submit(self, cost: int, deliver: Callable[[Any], object], task: Callable[..., Any], *args: object) -> None:
        """Add a task, whose result ``deliver`` gets; this blocks while the budget is used up."""
        while self._pending and self._in_flight + cost > self._budget:
            self._deliver_next()
        self._in_flight += cost
        self._pending.append((self.executor.submit(task, *args), cost, deliver))
        while self._pending and (self._pending[0][0] is None or self._pending[0][0].done()):
            self._deliver_next()

    def call(self, function: Callable[[], object]) -> None:
        """Add a call for when everything added so far has been delivered."""
        self._pending.append((None, 0, lambda _: function()))

    def drain(self) -> None:
        """Deliver everything that is still under way."""
        while self._pending:
            self._deliver_next()

    def cancel(self) -> None:
        """Drop everything that has not been delivered."""
        for future, _, _ in self._pending:
            if future is not None:
                future.cancel()
        self._pending.clear()

    def _deliver_next(self) -> None:
        future, cost, deliver = self._pending.popleft()
        deliver(None if future is None else future.result())
        self._in_flight -= cost
