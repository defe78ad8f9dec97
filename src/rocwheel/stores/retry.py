"""Decides how often, and after which pauses, a request is retried if a store is busy or a transfer is interrupted."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rocwheel.stores.store import BusyError, PassingError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

MOST_ATTEMPTS = 5
"""The maximum number of attempts without progress."""

_FIRST, _LONGEST = 0.2, 10.0
"""The pauses in seconds: the pause before the second attempt, and the maximum pause before any attempt."""
RETRIES: Final[Any] = {
    "max_retries": 5,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {
        "init_backoff": timedelta(seconds=_FIRST),
        "max_backoff": timedelta(seconds=_LONGEST),
        "base": 2.0,
    },
}
"""The number of retries that obstore makes by itself. `RetryPolicy` counts them as attempts."""
_LONGEST_ASKED = 120.0
"""The maximum wait that a store may request, in seconds. If a store requests a longer wait, there is no retry."""


def retry(attempt: Callable[[], Result]) -> Result:
    """Return the result of ``attempt``. If it raises a temporary error, it is retried after a pause."""
    policy = RetryPolicy()
    while True:
        try:
            return attempt()
        except PassingError as e:  # noqa: PERF203 # the purpose of the loop
            policy.wait_or_raise(e)


class RetryPolicy:
    """Decides whether and when to retry a failed attempt."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._attempts = self._failures = 0

    def wait_or_raise(self, error: PassingError, *, has_progress: bool = False) -> None:
        """Wait before the next attempt. If this was the last attempt, raise ``error`` with the number of attempts.

        If an attempt makes progress (``has_progress``), the count starts again. If a store requests a wait, the next
        attempt doesn't start before the wait is over. If the store requests a wait of several minutes, there is no
        retry. Retries by obstore count as attempts.
        """
        # obstore doesn't report its retries after an interrupted body, so they count as one attempt.
        self._attempts += error.attempts
        self._failures = 1 if has_progress else self._failures + error.attempts
        asked = error.retry_after if isinstance(error, BusyError) else 0.0
        if self._failures >= MOST_ATTEMPTS or asked > _LONGEST_ASKED:
            if self._attempts > 1:
                error.add_attempts(self._attempts, time.monotonic() - self._begin)
            raise error
        longest = min(_FIRST * 2 ** (self._failures - 1), _LONGEST)
        # Random pauses spread out clients that were rejected at the same time.
        time.sleep(max(asked, random.uniform(longest / 2, longest)))  # noqa: S311 # not a secret
