"""A whole run on a cluster: a plan made here, distributions made by workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from rocwheel.cluster.connect import connected
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import open_workers
from rocwheel.distributions.formats.write_wheel import DEFAULT_LEVEL
from rocwheel.packages.building.build import BuildResult, BuiltDistribution
from rocwheel.packages.building.make_manifest import make_manifest
from rocwheel.packages.clustered.build import Build, build_wheels
from rocwheel.packages.clustered.places import SharedFolder, SharedStore
from rocwheel.packages.job import PlanJob, check_level
from rocwheel.stores.urls import is_url, parse_url, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.cluster.seam import Cluster
    from rocwheel.distributions.formats.source_date import SourceDate
    from rocwheel.packages.clustered.places import Place
    from rocwheel.packages.clustered.records import WrittenWheel
    from rocwheel.packages.plan import Plan

__all__ = ["ClusterJob"]


class ClusterJob(msgspec.Struct, frozen=True):
    """What a plan is made from, and how a cluster builds it."""

    inputs: PlanJob
    dest: str
    """A folder that all machines share, or an ``s3://`` URL; distributions go to ``dist`` below it."""
    scheduler: str
    """The address of the scheduler, or the file that it wrote it to."""
    level: int = DEFAULT_LEVEL

    def run(self, warn: Callable[[str], object], *, progress: Progress = SILENT) -> tuple[Plan, BuildResult]:
        """Build, and return the plan and what was written; ``warn`` gets what the user should know.

        Raises what `rocwheel.packages.job.BuildJob.run`, `rocwheel.cluster.connect.connected` and
        `rocwheel.packages.clustered.build.build_wheels` raise.
        """
        place = _open_place(self.dest)
        place.check()
        check_level(self.level)
        source_date = self.inputs.source_date()
        with connected(self.scheduler) as connection:
            if connection.is_here:
                warn("All workers run on this machine: the build would be faster without --scheduler.")
            with open_workers() as executor, self.inputs.opened(executor, progress, source_date=source_date) as opened:
                plan = opened.plan
                removed = place.prepare()
                built = self._build(place, plan, connection.cluster, source_date, progress)
        epoch = source_date.seconds
        manifest = make_manifest(opened.ingredients, plan, built, place.folder, self.level, epoch)
        written_to = place.write_manifest(manifest)
        if self.inputs.repeats:
            self.inputs.repeats.check_outputs(manifest.outputs)
        warnings = plan.warnings + place.find_leftovers([one.path for one in built])
        return plan, BuildResult(plan.version, plan.targets, built, warnings, removed, manifest=written_to)

    def _build(
        self, place: Place, plan: Plan, cluster: Cluster, source_date: SourceDate, progress: Progress
    ) -> tuple[BuiltDistribution, ...]:
        """Let the workers write the wheels, in the order of the plan, and write the sdists here."""
        with place.exchange() as exchange:
            build = Build(exchange, place.dist, self.level, source_date, stage_all=place.is_store)
            written = build_wheels(plan, build, cluster, progress)
        built = tuple(BuiltDistribution(one.path, one.size, one.sha256) for one in _in_order(plan, written))
        return built + place.write_sdists(plan, source_date)


def _open_place(dest: str) -> Place:
    if not is_url(dest):
        return SharedFolder(Path(dest))
    scheme, _, path = parse_url(dest)
    if scheme == "file":
        return SharedFolder(Path("/", unquote(path)))
    if scheme != "s3":
        raise InputError(shown_url(dest), "can't be written to", expected="a folder, or s3://BUCKET/PREFIX")
    return SharedStore(dest.rstrip("/"))


def _in_order(plan: Plan, written: dict[str, WrittenWheel]) -> Iterator[WrittenWheel]:
    return (written[f"{wheel.folder}/{wheel.name.file_name}"] for wheel in plan.wheels)
