"""Jobs of a cluster: how many at a time, what follows on them, and what becomes of those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.cluster.seam import Job
from rocwheel.cluster.work import PoisonedJobError, do_jobs
from rocwheel.core.errors import InputError, WorkError
from tests.cluster.clusters import DeadlyError, PlainCluster

if TYPE_CHECKING:
    from collections.abc import Callable


def double(number: int) -> int:
    return 2 * number


def die(number: int) -> int:
    raise DeadlyError


def fail(error: Exception) -> None:
    raise error


def jobs(count: int) -> list[Job]:
    return [Job(f"job {number}", double, (number,)) for number in range(count)]


def keep(found: list[int]) -> Callable[[Job, int], list[Job]]:
    """Return a function that takes values into a list."""

    def take(job: Job, value: int) -> list[Job]:
        found.append(value)
        return []

    return take


def test_all_jobs_are_done_and_never_more_at_a_time_than_the_cluster_takes() -> None:
    cluster = PlainCluster(capacity=3)
    found: list[int] = []
    do_jobs(cluster, iter(jobs(10)), keep(found))
    assert (sorted(found), cluster.most) == ([0, 2, 4, 6, 8, 10, 12, 14, 16, 18], 3)


def test_jobs_that_follow_on_a_job_are_done_too() -> None:
    cluster = PlainCluster()
    found: list[int] = []

    def take(job: Job, value: int) -> list[Job]:
        found.append(value)
        return [Job("next", double, (value,))] if value in {2, 4} else []

    do_jobs(cluster, [Job("first", double, (1,))], take)
    assert found == [2, 4, 8]


def test_a_job_that_ends_workers_is_named_and_those_beside_it_are_done() -> None:
    cluster = PlainCluster()
    found: list[int] = []
    mixed = [*jobs(2), Job("bad.so", die, (0,)), *jobs(2)]
    with pytest.raises(PoisonedJobError) as caught:
        do_jobs(cluster, mixed, keep(found))
    assert str(caught.value).startswith("bad.so: ends every worker of tcp://plain that works on it. ")
    assert found == [0, 2]


def test_suspects_that_were_not_to_blame_are_done_after_all() -> None:
    left = [DeadlyError()]

    def stumble(number: int) -> int:
        if left:
            raise left.pop()
        return number

    found: list[int] = []
    both = [Job("first", stumble, (1,)), Job("second", stumble, (2,))]
    do_jobs(PlainCluster(), both, keep(found))
    assert found == [1, 2]


def test_a_suspect_is_done_again_in_its_parts_so_that_the_part_to_blame_is_named() -> None:
    parts = (Job("good.so", double, (1,)), Job("bad.so", die, (2,)))
    found: list[int] = []
    with pytest.raises(PoisonedJobError, match=r"^bad\.so: ends every worker"):
        do_jobs(PlainCluster(), [Job("both", die, (0,), parts=parts)], keep(found))
    assert found == [2]


def test_an_error_of_rocwheel_is_raised_as_it_is() -> None:
    error = InputError("file.so", "is broken")
    with pytest.raises(InputError) as caught:
        do_jobs(PlainCluster(), [Job("group", fail, (error,))], lambda *_: ())
    assert caught.value is error


def test_another_error_names_what_the_job_worked_on() -> None:
    with pytest.raises(WorkError) as caught:
        do_jobs(PlainCluster(), [Job("core: lib/a.so", fail, (ValueError("odd"),))], lambda *_: ())
    assert (
        str(caught.value) == "core: lib/a.so: can't be worked on by a worker (ValueError: odd). See the worker's log."
    )


def test_a_worker_without_memory_is_told_what_helps() -> None:
    with pytest.raises(WorkError, match="Allow more memory"):
        do_jobs(PlainCluster(), [Job("core: lib/a.so", fail, (MemoryError(),))], lambda *_: ())
