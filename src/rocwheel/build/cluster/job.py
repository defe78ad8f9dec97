"""A whole run on a cluster: a plan made here, and distributions made by workers in a shared folder or a store."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import msgspec

from rocwheel.build.building import (
    BuildResult,
    BuiltDistribution,
    find_leftovers,
    remove_unfinished,
    write_planned_sdist,
)
from rocwheel.build.cluster.build_wheels import Build, build_wheels
from rocwheel.build.cluster.exchange import Exchange
from rocwheel.build.cluster.readers import connected
from rocwheel.build.job import PlanJob, check_level
from rocwheel.build.manifest import make_manifest
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import open_workers
from rocwheel.core.writing import check_destination
from rocwheel.stores.store import MissingFileError, StoreError
from rocwheel.stores.urls import is_url, parse_url, shown_url
from rocwheel.wheels.build_manifest import (
    MANIFEST_NAME,
    SUMS_NAME,
    are_sums_of_a_build,
    check_manifest_place,
    remove_manifest,
    render_manifest,
    render_sums,
    write_manifest,
)
from rocwheel.wheels.writing import DEFAULT_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rocwheel.build.cluster.tasks import WrittenWheel
    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.build.plan import Plan, PlanWarning
    from rocwheel.wheels.build_manifest import BuildManifest
    from rocwheel.wheels.sdist import SourceDate


EXCHANGES = ".rocwheel-exchange"
"""The folder of a store that holds the exchanges of builds."""


class Place(Protocol):
    """A destination. Its methods raise `WorkError` where it can't be written to, `StoreError` where that is a store."""

    @property
    def is_store(self) -> bool:
        """Whether it is no folder: inputs are not taken to be shared then, either."""

    @property
    def dist(self) -> str:
        """The path or URL of what distributions go to."""

    @property
    def folder(self) -> Path | None:
        """The folder of the manifest; none for a store."""

    def check(self) -> None:
        """Raise `InputError` for what stands in the place of the manifest, or of its checksums, and is no build's."""

    def prepare(self) -> tuple[str, ...]:
        """Make it ready, and return the paths of what killed builds have left and is removed now."""

    def write_manifest(self, manifest: BuildManifest) -> str:
        """Write the manifest and the checksums, when all else is there; return the manifest's path or URL."""

    def exchange(self) -> AbstractContextManager[Exchange]:
        """Yield an exchange, which goes with the block."""

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan, which are small, from this process."""

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return a warning about distributions there that are not among the built ones, if any."""


class SharedFolder:
    """A folder that every machine has under the same path."""

    is_store = False

    def __init__(self, dest_dir: Path) -> None:
        """Raise `InputError` if something at or above the folder is not a folder."""
        self.folder = dest_dir
        self._dist_dir = dest_dir / "dist"
        check_destination(self._dist_dir)

    @property
    def dist(self) -> str:
        """The path of the folder that distributions go to, which doesn't depend on a process."""
        return str(self._dist_dir.resolve())

    def check(self) -> None:
        """Raise `InputError` for what stands in the place of the manifest, or of its checksums, and is no build's."""
        check_manifest_place(self.folder)

    def write_manifest(self, manifest: BuildManifest) -> str:
        """Write the manifest and the checksums into the folder."""
        return str(write_manifest(self.folder, manifest))

    def prepare(self) -> tuple[str, ...]:
        """Make the folder, and return the paths of what killed builds have left and is removed now."""
        try:
            self._dist_dir.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise write_error(self._dist_dir, e) from e
        remove_manifest(self.folder)
        return tuple(str(path) for path in remove_unfinished(self._dist_dir))

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield a hidden folder; what a killed build leaves of it, the next one removes."""
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder(Path(self.dist, "exchange")))
            except OSError as e:
                raise write_error(self._dist_dir, e) from e
            yield Exchange(str(folder))

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan."""
        return tuple(write_planned_sdist(sdist, Path(self.dist), source_date) for sdist in plan.sdists)

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return a warning about other distributions in the folder, if any."""
        return find_leftovers(Path(self.dist), built)


class SharedStore:
    """A store that every machine reaches; what is in it stays unless a build writes a file of the same name."""

    is_store = True
    folder = None

    def __init__(self, url: str) -> None:
        self._url = url
        self.dist = f"{url}/dist"

    def check(self) -> None:
        """Raise `InputError` for checksums that are not those of a build."""
        store = Exchange(self._url).store()
        with suppress(MissingFileError):
            if not are_sums_of_a_build(store.read(SUMS_NAME)):
                found, expected = "holds checksums of other files than a build's", "nothing, or those of a build"
                raise InputError(store.place(SUMS_NAME), found, expected=expected, remedy="Change --dest-dir.")

    def prepare(self) -> tuple[str, ...]:
        """Remove the manifest of an earlier build; a store makes its folders."""
        store = Exchange(self._url).store()
        for name in (MANIFEST_NAME, SUMS_NAME):
            store.delete(name)
        return ()

    def write_manifest(self, manifest: BuildManifest) -> str:
        """Put the manifest and the checksums on the store, the manifest last."""
        store = Exchange(self._url).store()
        store.put(SUMS_NAME, render_sums(manifest), create=False)
        store.put(MANIFEST_NAME, render_manifest(manifest), create=False)
        return store.place(MANIFEST_NAME)

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield a part of the store; what a killed build leaves of it is for a rule of the bucket to remove."""
        exchange = Exchange(f"{self._url}/{EXCHANGES}/{uuid.uuid4().hex}")
        try:
            yield exchange
        finally:
            with suppress(StoreError):  # which must not hide why the build failed
                store = exchange.store()
                for stored in store.list():
                    store.delete(stored.name)

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan."""
        with tempfile.TemporaryDirectory(prefix="rocwheel-") as folder:
            written = [write_planned_sdist(sdist, Path(folder), source_date) for sdist in plan.sdists]
            return tuple(self._put(one, Path(one.path).relative_to(folder).as_posix()) for one in written)

    def _put(self, written: BuiltDistribution, name: str) -> BuiltDistribution:
        store = Exchange(self.dist).store()
        store.put(name, Path(written.path), create=False)
        return msgspec.structs.replace(written, path=store.place(name))

    def find_leftovers(self, built: Sequence[str]) -> tuple[PlanWarning, ...]:
        """Return nothing: what a bucket holds beside is for those who publish from it."""
        del built
        return ()


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

        Raises what `rocwheel.build.job.BuildJob.run`, `rocwheel.build.cluster.readers.connected` and
        `rocwheel.build.cluster.build_wheels.build_wheels` raise.
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
