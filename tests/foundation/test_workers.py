"""How many workers a job has, and what becomes of their work."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.workers import iter_batches, map_sized, map_waiting, open_workers, work_in_order, worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def begun_before_the_first_result(sizes: list[int], limit: int) -> int:
    """Return how many pieces of work of these sizes are begun before what the first made is taken."""
    begun = 0

    def work() -> Iterator[tuple[int, partial[int]]]:
        nonlocal begun
        for number, size in enumerate(sizes):
            begun += 1
            yield size, partial(int, number)

    with ThreadPoolExecutor(2) as executor:
        results = work_in_order(executor, work(), limit)
        first = next(results)
        taken = begun
        assert [first, *results] == [*range(len(sizes))]
    return taken


@pytest.mark.parametrize(
    ("sizes", "begun"),
    [
        pytest.param([40 << 20] * 9, 3, id="the third has to wait for the first"),
        pytest.param([1 << 30] * 4, 2, id="one that is larger than the limit is alone"),
        pytest.param([1] * 3000, 1601, id="small ones count, too"),
        pytest.param([40 << 20], 1, id="one"),
    ],
)
def test_no_more_is_in_hand_than_the_limit(sizes: list[int], begun: int) -> None:
    assert begun_before_the_first_result(sizes, 100 << 20) == begun


def test_what_a_piece_of_work_raises_is_raised_in_its_turn() -> None:
    with ThreadPoolExecutor(2) as executor:
        results = work_in_order(executor, [(1, partial(int, "7")), (1, partial(int, "seven"))])
        assert next(results) == 7
        with pytest.raises(ValueError, match="seven"):
            next(results)


@pytest.mark.parametrize(
    ("costs", "batches"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([4, 4, 4, 4, 4], [[4, 4, 4], [4, 4]], id="the last one is what is left"),
        pytest.param([30, 1, 30], [[30], [1, 30]], id="large ones end theirs"),
    ],
)
def test_items_come_in_batches_of_about_one_cost(costs: list[int], batches: list[list[int]]) -> None:
    assert list(iter_batches(costs, lambda cost: cost, 10)) == batches


def test_what_computes_is_called_in_this_thread_and_what_waits_by_workers() -> None:
    def thread_of(batch: list[float]) -> str:
        for seconds in filter(None, batch):
            time.sleep(seconds)
        return threading.current_thread().name

    me = threading.current_thread().name
    batches: list[list[float]] = [[0, 0], [0.01, 0.01], [0, 0], [0, 0]]
    with open_workers(1) as executor:
        threads = list(map_waiting(executor, thread_of, batches))
    assert threads == [me, me, "rocwheel_0", "rocwheel_0"]


def test_what_waits_once_in_many_items_stays_in_this_thread() -> None:
    def thread_of(batch: list[float]) -> str:
        time.sleep(batch[0])
        return threading.current_thread().name

    with open_workers(1) as executor:
        threads = set(map_waiting(executor, thread_of, [[0.01] + [0] * 64] * 3))
    assert threads == {threading.current_thread().name}


@pytest.mark.parametrize(("seconds", "is_moved"), [(1.9, False), (2.1, True)])
def test_what_computes_most_of_the_time_stays_in_this_thread_however_often_it_waits(
    monkeypatch: pytest.MonkeyPatch, seconds: float, *, is_moved: bool
) -> None:
    # Given clocks that go on while a batch is worked on, which leaves the processor for each item
    clock = SimpleNamespace(passed=0.0, worked=0.0, waits=0)
    times = SimpleNamespace(monotonic=lambda: clock.passed, thread_time=lambda: clock.worked)
    monkeypatch.setattr("rocwheel.foundation.workers.time", times)
    monkeypatch.setattr("rocwheel.foundation.workers._waits", lambda: clock.waits)

    def thread_of(batch: list[int]) -> str:
        clock.passed += seconds
        clock.worked += 1.0
        clock.waits += len(batch)
        return threading.current_thread().name

    me = threading.current_thread().name
    with open_workers(1) as executor:
        threads = list(map_waiting(executor, thread_of, [[0, 0]] * 3))
    assert threads == ([me, "rocwheel_0", "rocwheel_0"] if is_moved else [me, me, me])


def test_large_items_are_done_by_workers_and_all_come_in_order() -> None:
    sizes = [1, 1 << 20, 64 << 10, (64 << 10) + 1]
    with open_workers(1) as executor:
        done = map_sized(executor, lambda size: (size, threading.current_thread().name), sizes, lambda size: size)
        found = list(done)
    me = threading.current_thread().name
    assert found == [(1, me), (1 << 20, "rocwheel_0"), (64 << 10, me), ((64 << 10) + 1, "rocwheel_0")]
