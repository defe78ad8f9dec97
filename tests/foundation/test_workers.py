"""How many workers a job has."""

from __future__ import annotations

import os

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.workers import worker_count


def test_there_are_as_many_workers_as_asked_for() -> None:
    assert worker_count(3) == 3


def test_by_default_there_is_one_for_each_core_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6})
    assert worker_count(0) == 3


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"^jobs: is -1; expected a number of workers, or 0 for one per core$"):
        worker_count(-1)
