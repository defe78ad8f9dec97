"""Attempts at what fails now and then: with pauses that grow, and an end."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from rocwheel.stores.errors import BrokenTransferError, BusyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ATTEMPTS", "pause_or_raise", "resumed"]

Result = TypeVar("Result")

ATTEMPTS = 5
"""How often something is tried in all, when nothing comes of it."""

_FIRST, _LONGEST = 0.2, 10.0
"""Seconds before the second attempt, and before any."""
_LONGEST_ASKED = 120.0
"""Seconds that a store may ask to wait; it isn't asked again if it wants more."""


def resumed(attempt: Callable[[], Result]) -> Result:
    """Return what ``attempt`` returns; it is called again, after a pause, while it raises what may pass."""
    failures = 0
    while True:
        try:
            return attempt()
        except (BrokenTransferError, BusyError) as e:  # noqa: PERF203  # that is what the loop is for
            failures += 1
            pause_or_raise(e, failures)


def pause_or_raise(error: StoreError, failures: int) -> None:
    """Wait before the attempt after this many failures in a row, or raise ``error`` if they are enough.

    A store that says how long to wait is asked no earlier; one that wants to be left alone for minutes, not again.
    """
    asked = error.retry_after if isinstance(error, BusyError) else 0.0
    if failures >= ATTEMPTS or asked > _LONGEST_ASKED:
        raise error
    longest = min(_FIRST * 2 ** (failures - 1), _LONGEST)
    # Those who were turned away together come back apart.
    time.sleep(max(asked, random.uniform(longest / 2, longest)))  # noqa: S311  # nothing is secret here
