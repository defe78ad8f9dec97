"""How often a store is asked again, and after which pauses, when it is busy or a transfer breaks off."""

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
"""How often something is tried in all, when nothing comes of it."""

_FIRST, _LONGEST = 0.2, 10.0
"""Seconds before the second attempt, and before any."""
RETRIES: Final[Any] = {
    "max_retries": 5,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {
        "init_backoff": timedelta(seconds=_FIRST),
        "max_backoff": timedelta(seconds=_LONGEST),
        "base": 2.0,
    },
}
"""How obstore asks again by itself, after the first attempt; `RetryPolicy` counts its attempts like others."""
_LONGEST_ASKED = 120.0
"""Seconds that a store may ask to wait; it isn't asked again if it wants more."""


def retry(attempt: Callable[[], Result]) -> Result:
    """Return what ``attempt`` returns; it is called again, after a pause, while it raises what may pass."""
    policy = RetryPolicy()
    while True:
        try:
            return attempt()
        except PassingError as e:  # noqa: PERF203  # that is what the loop is for
            policy.wait_or_raise(e)


class RetryPolicy:
    """Decides whether what has failed is tried again, and when."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._attempts = self._failures = 0

    def wait_or_raise(self, error: PassingError, *, has_progress: bool = False) -> None:
        """Wait before the next attempt, or raise ``error``, with what was tried, if it was the last one.

        An attempt that has brought something, ``has_progress``, is the first of a new row. A store that says how long
        to wait is asked no earlier; one that wants to be left alone for minutes, not again. What obstore has asked for
        several times has failed as often.
        """
        # How often obstore takes up a body that breaks off, it doesn't say: that counts as one attempt.
        self._attempts += error.attempts
        self._failures = 1 if has_progress else self._failures + error.attempts
        asked = error.retry_after if isinstance(error, BusyError) else 0.0
        if self._failures >= MOST_ATTEMPTS or asked > _LONGEST_ASKED:
            if self._attempts > 1:
                error.add_attempts(self._attempts, time.monotonic() - self._begin)
            raise error
        longest = min(_FIRST * 2 ** (self._failures - 1), _LONGEST)
        # Those who were turned away together come back apart.
        time.sleep(max(asked, random.uniform(longest / 2, longest)))  # noqa: S311  # nothing is secret here
