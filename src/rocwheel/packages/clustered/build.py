"""Building a plan on a cluster: workers pack pieces and put wheels together, and this process sees only records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.cluster.versions import worker_facts
from rocwheel.cluster.work import do_jobs
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.foundation.errors import WorkError, read_error
from rocwheel.packages.building.members import planned_size
from rocwheel.packages.clustered.access import check_access
from rocwheel.packages.clustered.exchange import Exchange
from rocwheel.packages.clustered.jobs import Destination, WheelJobs
from rocwheel.packages.clustered.records import Settings, WrittenWheel
from rocwheel.packages.clustered.staging import Staging, sources

if TYPE_CHECKING:
    import os

    from rocwheel.cluster.seam import Cluster
    from rocwheel.foundation.files.file_stamp import FileStamp
    from rocwheel.foundation.progress import Progress
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
    read an input, `ChangedFileError` for an input that changed, `PoisonedJobError` for one that ends workers, and
    `WorkError` when the cluster, the exchange or the destination fails.
    """
    staging = Staging(build.exchange, all_files=build.stage_all)
    inputs = _shared_inputs(plan, staging)
    check_access(cluster, build.exchange, inputs)
    settings = Settings(build.exchange, build.level, build.source_date.seconds, worker_facts())
    jobs = WheelJobs(plan.wheels, settings, Destination(build.destination, build.source_date.zip_time), progress)
    progress.begin("building", sum(planned_size(wheel.members) for wheel in plan.wheels))
    do_jobs(cluster, jobs.packing(staging), jobs.take)
    _require_same(inputs)
    progress.end()
    return jobs.written


def _shared_inputs(plan: Plan, staging: Staging) -> dict[str, FileStamp]:
    """Return the files that workers read by their paths, with their stamps."""
    members = (member for wheel in plan.wheels for member in (*wheel.members, *wheel.licenses))
    found = (source for member in members for source in sources(member) if not staging.is_staged(source))
    return {source.path: source.stamp for source in found if source.stamp is not None}


def _require_same(inputs: dict[str, FileStamp]) -> None:
    """Raise `ChangedFileError` for an input that is not what it was: workers compare its size and time alone."""
    for path, stamp in sorted(inputs.items()):
        stamp.require(_status(path), path)


def _status(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as e:
        raise read_error(path, e, kind=WorkError) from e
