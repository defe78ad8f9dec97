"""How many workers a job has."""

from __future__ import annotations

import os

from rocwheel.foundation.errors import InputError

__all__ = ["worker_count"]


def worker_count(jobs: int) -> int:
    """Return the number of workers that was asked for: ``jobs``, or with 0 one for each core of this process.

    Raises `InputError` for a negative number.
    """
    if jobs < 0:
        parameter, found = "jobs", f"is {jobs}"
        raise InputError(parameter, found, expected="a number of workers, or 0 for one per core")
    return jobs or len(os.sched_getaffinity(0))
