"""How patient obstore is: with a connection, with an answer, and with a server that says "later"."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

__all__ = ["CLIENT", "RETRIES"]

CLIENT: Final[dict[str, Any]] = {"timeout": timedelta(minutes=15), "connect_timeout": timedelta(seconds=10)}
"""The time for one request is that of its whole body, however large."""

RETRIES: Final[Any] = {
    "max_retries": 5,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2.0},
}
