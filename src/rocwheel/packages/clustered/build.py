"""Building a plan on a cluster: workers pack pieces and put wheels together, and this process sees only records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.cluster.versions import worker_facts
from rocwheel.cluster.work import do_jobs
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.packages.building.members import planned_size
from rocwheel.packages.clustered.access import check_access
from rocwheel.packages.clustered.exchange import Exchange
from rocwheel.packages.clustered.inputs import shared_inputs
from rocwheel.packages.clustered.jobs import Destination, WheelJobs
from rocwheel.packages.clustered.records import Settings, WrittenWheel
from rocwheel.packages.clustered.staging import Staging

if TYPE_CHECKING:
    from rocwheel.cluster.seam import Cluster
    from rocwheel.core.progress import Progress
    from rocwheel.packages.plan import Plan

__all__ = ["Build", "build_wheels"]


class Build(msgspec.Struct, frozen=True):
    """How to build, and where to."""

    exchange: Exchange
    destination: str
    """The folder, or the URL of a store, that wheels go to."""
    level: int
    source_date: SourceDate
    stage_all: bool
    """Whether inputs go through the exchange, even those that workers might be able to read by their path."""


def build_wheels(plan: Plan, build: Build, cluster: Cluster, progress: Progress) -> dict[str, WrittenWheel]:
    """Write the wheels of a plan, and return what was written, by folder and file name.

    The bytes are those that `rocwheel.packages.building.build` writes. Raises `AccessError` for a worker that can't
    read an input, `ChangedFileError` for an input that changed before its wheel was put together, `PoisonedJobError`
    for one that ends workers, and `WorkError` when the cluster, the exchange or the destination fails.
    """
    staging = Staging(build.exchange, all_files=build.stage_all)
    check_access(cluster, build.exchange, shared_inputs(plan.wheels, staging))
    settings = Settings(build.exchange, build.level, build.source_date.seconds, worker_facts())
    destination = Destination(build.destination, build.source_date.zip_time)
    jobs = WheelJobs(plan.wheels, settings, destination, staging, progress)
    progress.begin("building", sum(planned_size(wheel.members) for wheel in plan.wheels))
    do_jobs(cluster, jobs.packing(), jobs.take)
    progress.end()
    return jobs.written
