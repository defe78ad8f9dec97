"""Doing the same to many items, with every problem reported together."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, TypeVar

from rocwheel.foundation.errors import ProblemsError, RocwheelError, WorkError, each_problem
from rocwheel.foundation.workers import open_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["attempt_all", "convert_all", "convert_good", "map_collecting", "raise_all", "serialised"]

_WORKERS = min(3, os.cpu_count() or 1)
"""Items in work at a time: the codecs release the interpreter's lock, and each may hold a window of 128 MiB."""

Item = TypeVar("Item")
Result = TypeVar("Result")


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


def convert_all(subject: str, convert: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call ``convert`` with each item and return the results; raise the errors of all, as `raise_all` does."""
    problems: list[RocwheelError] = []
    results = attempt_all(convert, items, problems)
    raise_all(subject, problems)
    return results


def convert_good(
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


def map_collecting(
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


def serialised(advance: Callable[[int], None]) -> Callable[[int], None]:
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
