"""Sending several chunks at a time: a store answers each after a while, in which others can be on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AT_ONCE", "Send", "sending"]

Send = Callable[[Callable[[], None]], None]
"""Begins what sends one chunk; it waits where enough others are on their way."""

AT_ONCE = 2
"""Chunks on their way, and so in memory, there twice while a store takes them."""


@contextmanager
def sending() -> Iterator[Send]:
    """Yield what begins to send; all has arrived when the block ends. Either raises what sending raised."""
    under_way: deque[Future[None]] = deque()

    def send(put: Callable[[], None]) -> None:
        if len(under_way) >= AT_ONCE:
            under_way.popleft().result()
        under_way.append(executor.submit(put))

    with ThreadPoolExecutor(AT_ONCE, "rocwheel-sending") as executor:
        yield send
        while under_way:
            under_way.popleft().result()
