"""The simulation of builds on clusters, on costs that can be followed by hand."""

from __future__ import annotations

import pytest

from trials.benchmarks.cluster_simulation import Costs, JobCost, repeated, simulate


def costs(*seconds: float, assembly: float = 0.0, dispatch: float = 0.0) -> Costs:
    return Costs([JobCost(0, one) for one in seconds], {0: assembly}, dispatch)


@pytest.mark.parametrize(
    ("build", "workers", "expected"),
    [
        (costs(4, 3, 2, 1), 1, 10),
        (costs(4, 3, 2, 1), 2, 5),
        (costs(4, 3, 2, 1), 100, 4),
        (costs(4, 3, assembly=5), 2, 9),
        (costs(1, 1, 1, dispatch=0.25), 1, 3.5),
        (costs(0, 0, 0, 0, dispatch=2), 50, 10),
    ],
)
def test_the_time_of_a_build_depends_on_its_jobs_and_workers(build: Costs, workers: int, expected: float) -> None:
    assert simulate(build, workers) == pytest.approx(expected)


def test_a_wheel_is_assembled_while_others_are_packed() -> None:
    build = Costs([JobCost(0, 1), JobCost(1, 1), JobCost(1, 1)], {0: 2, 1: 1}, 0)
    assert simulate(build, 2) == 3


def test_repeated_builds_have_separate_wheels() -> None:
    build = repeated(costs(1, 2, assembly=3), 3)
    assert ([job.wheel for job in build.packing], build.assembly, build.work) == (
        [0, 0, 1, 1, 2, 2],
        {0: 3, 1: 3, 2: 3},
        18,
    )


def test_slower_workers_make_everything_take_longer() -> None:
    assert simulate(costs(4, 2, assembly=1).slower(1.5), 1) == pytest.approx(10.5)
