"""The workers of a job: how many there are, what reads its files, and how their errors are collected."""

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
"""About how many bytes workers have in hand together, with what waits to be written.

A single piece of work may have more; while it compresses, both its input and its output are in memory.
"""
_SMALL = 64 << 10
"""Bytes up to which an item is done sooner than another thread has it."""
_LEAST = 64 << 10
"""What a piece of work counts at least, as a million small ones take memory, too."""


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


def iter_batches(items: Iterable[Item], cost: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Yield lists of items whose costs come to ``limit`` or a little more, and what is left.

    A task of each small item would take workers longer to get than to do.
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
    """Yield what ``function`` makes of each batch: called in this thread while it computes, by workers once it waits.

    Threads that run Python take turns, and each call of the system is the end of a turn: as long as disk and network
    don't make them wait, two take longer than one. A batch waits where it takes twice the time that the processor
    works on it, and leaves the processor for every second item.
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
    """Yield what ``function`` returns for each item, in order: workers do the large ones, this thread the others.

    ``size`` is that of an item in bytes: codecs and hashes of many bytes let other threads run, all else takes turns.
    """
    order = sorted(range(len(items)), key=lambda at: -size(items[at]))  # so that all workers are busy to the end
    large = {at: executor.submit(function, items[at]) for at in order if size(items[at]) > _SMALL}
    for at, item in enumerate(items):
        yield large[at].result() if at in large else function(item)


def _waits() -> int:
    """Return how often this thread has left the processor by itself."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def work_in_order(
    executor: Executor, work: Iterable[tuple[int, Callable[[], Made]]], limit: int = BYTES_IN_WORK
) -> Iterator[Made]:
    """Yield what the pieces of ``work`` return, in their order; each comes with the bytes that it holds in memory.

    The next piece is begun as long as all that were begun and not yielded come to ``limit`` bytes at most, or none is
    left. Raises what the pieces raise.
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
    """Yield a function that has a thread call ``function``, one call behind; what that raises, the next one raises.

    All calls are done at the end of the block.
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
    """What readers are told of an item before it is read."""

    name: str
    """For messages."""
    size: int
    """About how many bytes are read."""
    path: str
    """The file that they are read from."""


class Readers(Protocol):
    """Workers that may be on other machines; these have the files under the same paths."""

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], tell: Callable[[Item], ReadContext]
    ) -> Iterator[Result]:
        """Yield what ``function`` returns for each item, in their order; both can be copied by pickle.

        Items bear no stamps but those that hold on any machine. Raises what ``function`` raises, and `WorkError` for a
        worker that can't read one of the files.
        """


_WORKERS = min(3, os.cpu_count() or 1)
"""Items in work at a time: the codecs release the interpreter's lock, and each may hold a window of 128 MiB."""


def raise_all(subject: str, problems: Sequence[RocwheelError]) -> None:
    """Raise the one problem, or a `ProblemsError` about ``subject`` that holds all; nothing when there is none.

    One `ProblemsError` is raised as it is, with the subject that it is about. A `WorkError` that many items have
    word for word, such as of a temporary folder that is not there, is raised once.
    """
    work = {str(problem): problem for problem in problems if isinstance(problem, WorkError)}
    different = [problem for problem in problems if work.get(str(problem), problem) is problem]
    if len(different) == 1:
        raise different[0]
    if different:
        raise ProblemsError(subject, different)


def map_collecting(subject: str, convert: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call ``convert`` with each item and return the results; raise the errors of all, as `raise_all` does."""
    problems: list[RocwheelError] = []
    results = attempt_all(convert, items, problems)
    raise_all(subject, problems)
    return results


def map_skipping(
    subject: str, convert: Callable[[Item], Result], items: Iterable[Item], problems: list[RocwheelError]
) -> list[Result]:
    """Call ``convert`` with each item, return the results, and append the errors to ``problems``.

    The caller goes on with the results, and raises the problems in the end. They are raised here, as `raise_all` does,
    when there is no result to go on with, or when one of them is a `WorkError`.
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
    """Call ``function`` with each item, in a few threads, and return the results in the order of the items.

    Raises `ProblemsError` about ``subject`` with the ``known`` problems and those that the calls raised, even for one
    problem. A `WorkError` is raised as it is. With a list ``unread``, the problems are appended to it, and the results
    are those of all other items, if there are any.
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
    """Return a form of ``advance`` that several threads may call."""
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
