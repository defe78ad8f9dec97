"""The header ``Retry-After`` (:rfc:`9110`, section 10.2.3)."""

from __future__ import annotations

import time
from email.utils import mktime_tz, parsedate_tz

__all__ = ["read_retry_after"]

_MOST_DIGITS = 9


def read_retry_after(text: str, now: float | None = None) -> float:
    """Return how many seconds a server asks to wait, at a time in seconds since 1970; none (0) for other text.

    >>> read_retry_after("120"), read_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=50.0), read_retry_after("soon")
    (120.0, 10.0, 0.0)
    """
    if text.isascii() and text.isdigit():
        return float(text[:_MOST_DIGITS])
    try:
        parts = parsedate_tz(text)
        then = mktime_tz(parts) if parts else 0.0
    except (ValueError, OverflowError, TypeError, IndexError):
        return 0.0
    return max(then - (time.time() if now is None else now), 0.0)
