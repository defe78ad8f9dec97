"""How many workers a job has, and what becomes of their work."""

from __future__ import annotations

import os
import threading

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.workers import open_workers, worker_count


def test_there_are_as_many_workers_as_asked_for() -> None:
    assert worker_count(3) == 3


def test_by_default_there_is_one_for_each_core_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6})
    assert worker_count(0) == 3


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"^jobs: is -1; expected a number of workers, or 0 for one per core$"):
        worker_count(-1)


def test_all_work_is_done_at_the_end_of_the_block() -> None:
    done: list[int] = []
    with open_workers(2) as workers:
        for number in range(20):
            workers.submit(done.append, number)
    assert sorted(done) == [*range(20)]


def test_a_block_that_is_ended_gives_up_the_work_that_has_not_begun() -> None:
    begun = threading.Semaphore(0)
    go_on = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        begun.release()
        go_on.wait()
        done.append(number)

    def end_block() -> None:
        with open_workers(2) as workers:
            for number in range(20):
                workers.submit(work, number)
            begun.acquire()
            begun.acquire()
            threading.Timer(0.2, go_on.set).start()
            raise SystemExit

    with pytest.raises(SystemExit):
        end_block()
    assert len(done) == 2
