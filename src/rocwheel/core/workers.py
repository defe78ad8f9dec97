"""Manages a job's workers: their number, how they read files, and how their errors are collected."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError, each_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
    from concurrent.futures import Executor, Future


Item = TypeVar("Item")
Made = TypeVar("Made")
Batch = TypeVar("Batch", bound="Sized")

BYTES_IN_WORK = 64 << 20
"""The approximate number of bytes in all workers' memory, including bytes that are waiting to be written.

A single task can exceed this number. During compression, both its input and its output are in memory.
"""
_SMALL = 64 << 10
"""The maximum size, in bytes, of items that this thread processes itself.

Passing such a small item to another thread would take longer than processing it.
"""
_LEAST = 64 << 10
"""The minimum cost of a task in bytes, because a million small tasks also need memory."""


def worker_count(jobs: int) -> int:
    """Return the number of workers: ``jobs``, or one for each of this process's cores if ``jobs`` is 0.

    Raises `InputError` for a negative number.
    """
    if jobs < 0:
        parameter, found = "jobs", f"is {jobs}"
        raise InputError(parameter, found, expected="a number of workers, or 0 for one worker per core")
    return jobs or len(os.sched_getaffinity(0))


@contextmanager
def open_workers(count: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of ``count`` threads, by default a few per core, and wait for its tasks at the end of the block.

    If the block fails or a signal ends it, work that hasn't started is dropped. Otherwise, a terminated process would
    still process thousands of members before it exits.
    """
    with ThreadPoolExecutor(count, "rocwheel") as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def iter_batches(items: Iterable[Item], cost: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Yield lists of items whose total cost is ``limit`` or slightly more. The last list has the remaining items.

    Passing a single small item to a worker would take longer than processing the item.
    """
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += cost(item)
        if total >= limit:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def map_waiting(executor: Executor, function: Callable[[Batch], Made], batches: Iterable[Batch]) -> Iterator[Made]:
    """Yield the result of ``function`` for each batch, computed in this thread, or in workers if it waits for I/O.

    Python threads take turns, and each system call ends a turn. Therefore, two threads take longer than one thread
    unless they wait for disk or network. A batch counts as waiting if it takes more than twice its processor time and
    yields the processor at least once for every two items.
    """
    rest = iter(batches)
    for batch in rest:
        began, waits, worked = time.monotonic(), _waits(), time.thread_time()
        made = function(batch)
        is_slow = time.monotonic() - began > 2 * (time.thread_time() - worked)
        has_waited = is_slow and 2 * (_waits() - waits) >= len(batch)
        yield made
        if has_waited:
            break
    yield from executor.map(function, rest)


def map_sized(
    executor: Executor, function: Callable[[Item], Made], items: Sequence[Item], size: Callable[[Item], int]
) -> Iterator[Made]:
    """Yield the result of ``function`` for each item, in order.

    Workers process large items, and this thread processes all other items.

    ``size`` returns an item's size in bytes. Codecs and hash functions let other threads run while they process many
    bytes, but all other code runs in only one thread at a time.
    """
    order = sorted(range(len(items)), key=lambda at: -size(items[at]))  # so that all workers stay busy until the end
    large = {at: executor.submit(function, items[at]) for at in order if size(items[at]) > _SMALL}
    for at, item in enumerate(items):
        yield large[at].result() if at in large else function(item)


def _waits() -> int:
    """Return how often this thread has voluntarily yielded the processor."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def work_in_order(
    executor: Executor, work: Iterable[tuple[int, Callable[[], Made]]], limit: int = BYTES_IN_WORK
) -> Iterator[Made]:
    """Yield the results of the tasks in ``work``, in order.

    Each task comes with the number of bytes that it needs in memory.

    The next task starts if the started tasks whose results haven't been yielded yet need at most ``limit`` bytes in
    total, or if there are no such tasks. Raises the same errors as the tasks.
    """
    waiting: deque[tuple[int, Future[Made]]] = deque()
    held = 0
    for size, piece in work:
        counted = max(size, _LEAST)
        while waiting and held + counted > limit:
            held -= waiting[0][0]
            yield waiting.popleft()[1].result()
        waiting.append((counted, executor.submit(piece)))
        held += counted
    while waiting:
        yield waiting.popleft()[1].result()


@contextmanager
def run_in_background(function: Callable[[bytes], object]) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that calls ``function`` in a thread, and returns before that call is finished.

    Each call first waits for the previous call, and raises its exceptions. All calls are finished at the end of the
    block.
    """
    with ThreadPoolExecutor(1, "rocwheel-beside") as executor:
        under_way: list[Future[object]] = []

        def call(data: bytes) -> None:
            if under_way:
                under_way.pop().result()
            under_way.append(executor.submit(function, data))

        yield call
        for last in under_way:
            last.result()


Result = TypeVar("Result")


class ReadContext(NamedTuple):
    """Data about an item that readers know before reading it."""

    name: str
    """The name for messages."""
    size: int
    """The approximate number of bytes to read."""
    path: str
    """The path of the file that contains the bytes."""


class Readers(Protocol):
    """Workers that can be on other machines where the files have the same paths."""

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], ReadContext]
    ) -> Iterator[Result]:
        """Yield the result of ``function`` for each item, in order. Functions and items must be picklable.

        All stamps in items must be valid on any machine. Raises the same errors as ``function``, and `WorkError` if a
        worker can't read a file.
        """


_WORKERS = min(3, os.cpu_count() or 1)
"""The number of parallel items. Codecs release the interpreter's lock, and each may use a window of 128 MiB."""


def raise_all(subject: str, problems: Sequence[RocwheelError]) -> None:
    """Raise the only problem, or a `ProblemsError` about ``subject`` with all problems.

    If there are no problems, do nothing.

    A single `ProblemsError` is raised unchanged, with its own subject. A `WorkError` that occurs several times with the
    same text, such as for a missing temporary folder, is raised only once.
    """
    work = {str(problem): problem for problem in problems if isinstance(problem, WorkError)}
    different = [problem for problem in problems if work.get(str(problem), problem) is problem]
    if len(different) == 1:
        raise different[0]
    if different:
        raise ProblemsError(subject, different)


def map_collecting(subject: str, convert: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call ``convert`` with each item and return the results. Raises all errors in the same way as `raise_all`."""
    problems: list[RocwheelError] = []
    results = attempt_all(convert, items, problems)
    raise_all(subject, problems)
    return results


def map_skipping(
    subject: str, convert: Callable[[Item], Result], items: Iterable[Item], problems: list[RocwheelError]
) -> list[Result]:
    """Call ``convert`` with each item, return the results, and append the errors to ``problems``.

    The caller continues with the results, and finally raises the problems. If there are no results, or if one of the
    problems is a `WorkError`, this function raises them in the same way as `raise_all`.
    """
    found: list[RocwheelError] = []
    results = attempt_all(convert, items, found)
    if not results or any(isinstance(problem, WorkError) for problem in each_problem(found)):
        raise_all(subject, found)
    problems += found
    return results


def attempt_all(
    convert: Callable[[Item], Result], items: Iterable[Item], problems: list[RocwheelError]
) -> list[Result]:
    """Call ``convert`` with each item, return the results, and append the errors to ``problems``."""

    def attempt(item: Item) -> list[Result]:
        try:
            return [convert(item)]
        except RocwheelError as e:
            problems.append(e)
            return []

    return [result for item in items for result in attempt(item)]


def map_in_threads(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    subject: str,
    known: Sequence[RocwheelError] = (),
    unread: list[RocwheelError] | None = None,
) -> tuple[Result, ...]:
    """Call ``function`` with each item in a few threads, and return the results in order.

    Raises `ProblemsError` about ``subject`` with the ``known`` problems and the problems from the calls, even for a
    single problem. Raises a `WorkError` unchanged. If ``unread`` is a list, the problems are appended to it, and the
    results for all other items, if any, are returned.
    """
    with open_workers(_WORKERS) as executor:
        futures = [executor.submit(function, item) for item in items]
        wait(futures)
    problems = [*known, *_problems(futures)]
    results = tuple(future.result() for future in futures if future.exception() is None)
    if problems and (unread is None or not results):
        raise ProblemsError(subject, problems)
    if unread is not None:
        unread += problems
    return results


def serialized(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return a thread-safe form of ``advance``."""
    lock = threading.Lock()

    def locked(amount: int) -> None:
        with lock:
            advance(amount)

    return locked


def _problems(futures: Sequence[Future[Result]]) -> Iterator[RocwheelError]:
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if isinstance(error, WorkError) or not isinstance(error, RocwheelError):
            raise error
    yield from each_problem(error for error in errors if isinstance(error, RocwheelError))
