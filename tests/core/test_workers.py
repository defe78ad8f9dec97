"""Tests of `rocwheel.core.workers`."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.core.python import loading_without_collections, rare_collections
from rocwheel.core.workers import (
    iter_batches,
    map_collecting,
    map_in_threads,
    map_sized,
    map_skipping,
    map_waiting,
    open_workers,
    raise_all,
    work_in_order,
    worker_count,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_the_worker_count_is_the_requested_number() -> None:
    assert worker_count(3) == 3


def test_the_default_is_one_worker_per_available_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6})
    assert worker_count(0) == 3


def test_a_negative_worker_count_is_refused() -> None:
    with pytest.raises(InputError, match=r"^jobs: is -1; expected a number of workers, or 0 for one worker per core$"):
        worker_count(-1)


def test_all_work_is_finished_at_the_end_of_the_block() -> None:
    done: list[int] = []
    with open_workers(2) as workers:
        for number in range(20):
            workers.submit(done.append, number)
    assert sorted(done) == [*range(20)]


def test_an_aborted_block_cancels_pending_work() -> None:
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
def test_work_in_progress_stays_within_the_limit(sizes: list[int], begun: int) -> None:
    assert begun_before_the_first_result(sizes, 100 << 20) == begun


def test_an_exception_is_raised_in_order_of_the_results() -> None:
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
def test_items_are_batched_by_cost(costs: list[int], batches: list[list[int]]) -> None:
    assert list(iter_batches(costs, lambda cost: cost, 10)) == batches


def test_cpu_bound_batches_run_in_this_thread_and_waiting_batches_in_workers() -> None:
    def thread_of(batch: list[float]) -> str:
        for seconds in filter(None, batch):
            time.sleep(seconds)
        return threading.current_thread().name

    me = threading.current_thread().name
    batches: list[list[float]] = [[0, 0], [0.01, 0.01], [0, 0], [0, 0]]
    with open_workers(1) as executor:
        threads = list(map_waiting(executor, thread_of, batches))
    assert threads == [me, me, "rocwheel_0", "rocwheel_0"]


def test_a_batch_with_a_single_wait_stays_in_this_thread() -> None:
    def thread_of(batch: list[float]) -> str:
        time.sleep(batch[0])
        return threading.current_thread().name

    with open_workers(1) as executor:
        threads = set(map_waiting(executor, thread_of, [[0.01] + [0] * 64] * 3))
    assert threads == {threading.current_thread().name}


@pytest.mark.parametrize(("seconds", "is_moved"), [(1.9, False), (2.1, True)])
def test_a_batch_that_computes_most_of_the_time_stays_in_this_thread(
    monkeypatch: pytest.MonkeyPatch, seconds: float, *, is_moved: bool
) -> None:
    # Given clocks that go on while a batch is worked on, which leaves the processor for each item
    clock = SimpleNamespace(passed=0.0, worked=0.0, waits=0)
    times = SimpleNamespace(monotonic=lambda: clock.passed, thread_time=lambda: clock.worked)
    monkeypatch.setattr("rocwheel.core.workers.time", times)
    monkeypatch.setattr("rocwheel.core.workers._waits", lambda: clock.waits)

    def thread_of(batch: list[int]) -> str:
        clock.passed += seconds
        clock.worked += 1.0
        clock.waits += len(batch)
        return threading.current_thread().name

    me = threading.current_thread().name
    with open_workers(1) as executor:
        threads = list(map_waiting(executor, thread_of, [[0, 0]] * 3))
    assert threads == ([me, "rocwheel_0", "rocwheel_0"] if is_moved else [me, me, me])


def test_large_items_are_processed_by_workers_and_results_stay_in_order() -> None:
    sizes = [1, 1 << 20, 64 << 10, (64 << 10) + 1]
    with open_workers(1) as executor:
        done = map_sized(executor, lambda size: (size, threading.current_thread().name), sizes, lambda size: size)
        found = list(done)
    me = threading.current_thread().name
    assert found == [(1, me), (1 << 20, "rocwheel_0"), (64 << 10, me), ((64 << 10) + 1, "rocwheel_0")]


class Knot:
    """What only a search for cycles frees."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_collections_are_rare_only_inside_the_block() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == (200_000, *before[1:])
    assert gc.get_threshold() == before


def test_disabled_garbage_collection_stays_disabled() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rare_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


@pytest.fixture
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
@pytest.mark.parametrize("is_wanted", [True, False], ids=["on", "off"])
def test_loading_pauses_garbage_collection_and_restores_its_state(*, is_wanted: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if is_wanted else gc.disable)()
        with loading_without_collections():
            assert not gc.isenabled()
        assert gc.isenabled() == is_wanted
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.usefixtures("_thawed")
def test_garbage_collection_resumes_after_a_failed_import() -> None:
    with pytest.raises(ImportError), loading_without_collections():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.usefixtures("_thawed")
def test_later_collections_skip_only_the_objects_created_while_loading() -> None:
    with loading_without_collections():
        loaded = weakref.ref(Knot())
    later = weakref.ref(Knot())
    gc.collect()
    assert (loaded() is None, later() is None) == (False, True)


@pytest.mark.slow
def test_a_command_runs_with_garbage_collection_and_its_modules_frozen() -> None:
    code = (
        "import atexit, gc, sys; sys.argv = ['rocwheel', '--version']; from rocwheel.__main__ import main\n"
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000, file=sys.stderr)); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "True True\n")


def _fail(item: str) -> str:
    if item == "several":
        raise ProblemsError(item, [InputError("one", "is bad"), InputError("two", "is bad")])
    if item == "full":
        raise WorkError(item, "can't be written")
    if item == "full and more":
        raise ProblemsError(item, [InputError("one", "is bad"), WorkError("two", "can't be written")])
    if item == "accident":
        raise ZeroDivisionError
    if item == "bad":
        raise InputError(item, "is bad")
    return item.upper()


def test_results_are_in_the_order_of_the_items() -> None:
    assert map_in_threads(_fail, [chr(code) for code in range(97, 117)], "letters") == tuple("ABCDEFGHIJKLMNOPQRST")


def test_all_problems_are_raised_together_after_previously_known_ones() -> None:
    with pytest.raises(ProblemsError) as caught:
        map_in_threads(_fail, ["bad", "fine", "several"], "the folder", [InputError("zero", "is bad")])
    assert str(caught.value) == ("the folder: 4 problems\n  zero: is bad\n  bad: is bad\n  one: is bad\n  two: is bad")


def test_failed_work_is_reported_before_bad_input() -> None:
    with pytest.raises(WorkError, match=r"^full: can't be written$"):
        map_in_threads(_fail, ["bad", "full"], "the folder")


def test_an_unexpected_exception_is_not_reported_as_a_problem() -> None:
    with pytest.raises(ZeroDivisionError):
        map_in_threads(_fail, ["accident", "bad"], "the folder")


def test_converted_items_are_in_order() -> None:
    assert map_collecting("the list", _fail, ["a", "b"]) == ["A", "B"]


def test_a_single_failing_item_raises_its_own_error() -> None:
    with pytest.raises(InputError, match=r"^bad: is bad$"):
        map_collecting("the list", _fail, ["a", "bad"])


def test_several_failing_items_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        map_collecting("the list", _fail, ["bad", "a", "bad"])
    assert str(caught.value) == "the list: 2 problems\n  bad: is bad\n  bad: is bad"


def test_several_problems_of_a_single_item_are_raised_under_its_name() -> None:
    with pytest.raises(ProblemsError) as caught:
        map_collecting("the list", _fail, ["a", "several"])
    assert str(caught.value) == "several: 2 problems\n  one: is bad\n  two: is bad"


def test_problems_of_several_items_are_listed_individually() -> None:
    with pytest.raises(ProblemsError) as caught:
        map_collecting("the list", _fail, ["bad", "several"])
    assert str(caught.value) == "the list: 3 problems\n  bad: is bad\n  one: is bad\n  two: is bad"


def test_an_empty_list_of_problems_is_not_an_error() -> None:
    raise_all("the list", [])


def convert(text: str) -> int:
    """Return a number; for ``full`` raise that there is no room, for other text that it is none."""
    if text == "full":
        raise WorkError(text, "has no room")
    if not text.isdigit():
        raise InputError(text, "is no number")
    return int(text)


def test_valid_items_are_converted_and_errors_of_the_others_are_collected() -> None:
    problems: list[RocwheelError] = []
    assert map_skipping("numbers", convert, ["1", "x", "2"], problems) == [1, 2]
    assert [str(problem) for problem in problems] == ["x: is no number"]


@pytest.mark.parametrize(("items", "text"), [(["x"], "x: is no number"), (["1", "full"], "full: has no room")])
def test_errors_are_raised_if_no_item_is_valid_or_the_work_failed(items: list[str], text: str) -> None:
    problems: list[RocwheelError] = []
    with pytest.raises(InputError, match=f"^{text}$"):
        map_skipping("numbers", convert, items, problems)
    assert problems == []


def test_failed_work_among_several_problems_is_raised() -> None:
    problems: list[RocwheelError] = []
    with pytest.raises(ProblemsError, match=r"^full and more: 2 problems\n"):
        map_skipping("items", _fail, ["a", "full and more"], problems)
    assert problems == []


def test_identical_problems_are_raised_once() -> None:
    problems = [WorkError("TMPDIR", "names /gone"), WorkError("TMPDIR", "names /gone")]
    with pytest.raises(WorkError, match=r"^TMPDIR: names /gone$"):
        raise_all("paths", problems)
    with pytest.raises(ProblemsError, match=r"^paths: 2 problems\n  TMPDIR: names /gone\n  a: is bad$"):
        raise_all("paths", [*problems, InputError("a", "is bad")])
