"""The workers of a job: how many there are, and what becomes of their work when the job ends early."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["open_workers", "worker_count"]


def worker_count(jobs: int) -> int:
    """Return the number of workers that was asked for: ``jobs``, or with 0 one for each core of this process.

    Raises `InputError` for a negative number.
    """
    if jobs < 0:
        parameter, found = "jobs", f"is {jobs}"
        raise InputError(parameter, found, expected="a number of workers, or 0 for one per core")
    return jobs or len(os.sched_getaffinity(0))


@contextmanager
def open_workers(count: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Yield ``count`` threads, by default a few for each core, and wait for their work at the end of the block.

    A block that fails, or that a signal ends, gives up the work that hasn't begun: a process that was told to end would
    else finish thousands of members first.
    """
    with ThreadPoolExecutor(count, "rocwheel") as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
