"""Builds on a cluster: workers pack members into pieces, and assemble the wheels in a folder or a store.

The process that starts the build sees only descriptions of the pieces, not their bytes.
"""

from __future__ import annotations

import tempfile
import uuid
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.build.building import (
    BuildResult,
    BuiltDistribution,
    find_leftovers,
    largest_first,
    remove_unfinished,
    write_planned_sdist,
)
from rocwheel.build.cluster.exchange import Exchange, Staging, check_machines, require_same, shared_inputs
from rocwheel.build.cluster.readers import connected
from rocwheel.build.cluster.tasks import Hashed, Piece, Settings, assemble, hash_member, pack_cut, pack_group
from rocwheel.build.cluster.workers import Job, do_jobs, worker_facts
from rocwheel.build.job import PlanJob, check_level
from rocwheel.build.manifest import make_manifest
from rocwheel.build.members import PlacedMember, planned_size, stream_format, wheel_members
from rocwheel.build.plan import FileMember
from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import ChangedFileError
from rocwheel.core.scratch import locked_folder, scratch_folder
from rocwheel.core.workers import open_workers
from rocwheel.core.writing import check_destination
from rocwheel.stores.store import MissingFileError, StoreError
from rocwheel.stores.urls import is_url, local_path, parse_url, shown_url
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
from rocwheel.wheels.member_compression import STREAM_PIECE
from rocwheel.wheels.packing import CUT_FROM, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.build.plan import Plan, PlannedWheel
    from rocwheel.wheels.build_manifest import BuildManifest
    from rocwheel.wheels.sdist import SourceDate


class ClusterJob(msgspec.Struct, frozen=True):
    """The inputs of a plan, and the cluster that builds it."""

    inputs: PlanJob
    dest: str
    """A folder that all machines share, or an ``s3://`` URL. Distributions go to ``dist`` below it."""
    scheduler: str
    """The address of the scheduler, or the scheduler file that contains the address."""
    level: int = WHEEL_LEVEL

    def run(self, warn: Callable[[str], object], *, progress: Progress = SILENT) -> tuple[Plan, BuildResult]:
        """Build, and return the plan and the results. ``warn`` receives messages for the user.

        Raises whatever `rocwheel.build.job.BuildJob.run`, `rocwheel.build.cluster.readers.connected`, and
        `build_wheels` raise.
        """
        place = _open_place(self.dest)
        check_level(self.level)
        source_date = self.inputs.source_date()
        with (
            connected(self.scheduler, warn, "the build") as cluster,
            open_workers() as executor,
            self.inputs.opened(executor, progress, source_date=source_date) as (plan, inputs),
            place.locked(),
        ):
            removed = place.prepare()
            with place.exchange() as exchange:
                settings = Settings(exchange, place.dist, self.level, source_date, worker_facts())
                built = build_wheels(plan, settings, cluster, progress)
            built += place.write_sdists(plan, source_date)
            manifest = make_manifest(inputs, plan, built, place.folder, self.level, source_date.seconds)
            written_to = place.write_manifest(manifest)
        if self.inputs.repeats:
            self.inputs.repeats.check_outputs(manifest.outputs)
        # A bucket may contain other files; only the publisher knows whether they belong there.
        leftovers = find_leftovers(Path(place.dist), [one.path for one in built]) if place.folder else ()
        warnings = plan.warnings + leftovers
        return plan, BuildResult(plan.version, plan.targets, built, warnings, removed, manifest=written_to)


def _open_place(dest: str) -> SharedFolder | SharedStore:
    if not is_url(dest):
        return SharedFolder(Path(dest))
    scheme, _, path = parse_url(dest)
    if scheme == "file":
        return SharedFolder(Path("/", local_path(path)))
    if scheme != "s3":
        raise InputError(shown_url(dest), "can't be written to", expected="a folder or s3://BUCKET/PREFIX")
    return SharedStore(dest.rstrip("/"))


class SharedFolder:
    """A folder with the same path on every machine. Methods raise `WorkError` if the folder isn't writable."""

    def __init__(self, dest_dir: Path) -> None:
        """Raise `InputError` if something else exists at the path of the folder, its manifest, or its checksums."""
        self.folder = dest_dir
        """The folder that receives the manifest."""
        self._dist_dir = dest_dir / "dist"
        check_destination(self._dist_dir)
        check_manifest_place(dest_dir)

    @property
    def dist(self) -> str:
        """The path of the folder for distributions, which is the same in every process."""
        return str(self._dist_dir.resolve())

    def locked(self) -> AbstractContextManager[None]:
        """Prevent other builds from writing to the folder.

        Entering raises `WorkError` if another build is writing to it.
        """
        return locked_folder(self._dist_dir, timeout=0)

    def prepare(self) -> tuple[str, ...]:
        """Create the folder, remove the leftovers from killed builds, and return the removed paths."""
        try:
            self._dist_dir.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise write_error(self._dist_dir, e) from e
        remove_manifest(self.folder)
        return tuple(str(path) for path in remove_unfinished(self._dist_dir))

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield an exchange in a hidden folder. If the build is killed, the next build removes that folder."""
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder(Path(self.dist, "exchange")))
                (folder / "pieces").mkdir()
            except OSError as e:
                raise write_error(self._dist_dir, e) from e
            yield Exchange(str(folder))

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Write the source distributions of a plan from this process, because they are small."""
        return tuple(write_planned_sdist(sdist, Path(self.dist), source_date) for sdist in plan.sdists)

    def write_manifest(self, manifest: BuildManifest) -> str:
        """Write the manifest and the checksums, which must come last, and return the manifest's path."""
        return str(write_manifest(self.folder, manifest))


class SharedStore:
    """A store that every machine can access. A build replaces only files with the names that it writes.

    Methods raise `StoreError` if the store isn't writable.
    """

    folder = None

    def __init__(self, url: str) -> None:
        """Raise `InputError` if the store has checksums that are not from a build."""
        self._url = url
        self.dist = f"{url}/dist"
        store = Exchange(url).store()
        with suppress(MissingFileError):
            if not are_sums_of_a_build(store.read(SUMS_NAME)):
                found, expected = (
                    ("contains checksums of files that are not from a build"),
                    "no file, or the checksums from a build",
                )
                raise InputError(store.place(SUMS_NAME), found, expected=expected, remedy="Change --dest-dir.")

    def locked(self) -> AbstractContextManager[None]:
        """Do nothing, because a store has no locks."""
        return nullcontext()

    def prepare(self) -> tuple[str, ...]:
        """Remove the manifest of an earlier build. A store needs no folders."""
        for name in (MANIFEST_NAME, SUMS_NAME):
            Exchange(self._url).store().delete(name)
        return ()

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """Yield an exchange in the store.

        If the build is killed, only a lifecycle rule of the bucket removes its objects.
        """
        exchange = Exchange(f"{self._url}/.rocwheel-exchange/{uuid.uuid4().hex}")
        try:
            yield exchange
        finally:
            with suppress(StoreError):  # a failed cleanup must not hide the build's own error
                for stored in exchange.store().list():
                    exchange.store().delete(stored.name)

    def write_sdists(self, plan: Plan, source_date: SourceDate) -> tuple[BuiltDistribution, ...]:
        """Upload the source distributions of a plan from this process, because they are small."""
        store = Exchange(self.dist).store()
        with tempfile.TemporaryDirectory(prefix="rocwheel-") as folder:
            written = [write_planned_sdist(sdist, Path(folder), source_date) for sdist in plan.sdists]
            names = [Path(one.path).relative_to(folder).as_posix() for one in written]
            for name in names:
                store.put(name, Path(folder, name), create=False)
        both = zip(written, names, strict=True)
        return tuple(msgspec.structs.replace(one, path=store.place(name)) for one, name in both)

    def write_manifest(self, manifest: BuildManifest) -> str:
        """Upload the checksums and then the manifest to the store, and return the manifest's URL."""
        store = Exchange(self._url).store()
        store.put(SUMS_NAME, render_sums(manifest), create=False)
        store.put(MANIFEST_NAME, render_manifest(manifest), create=False)
        return store.place(MANIFEST_NAME)


def build_wheels(
    plan: Plan, settings: Settings, cluster: Cluster, progress: Progress, *, stage_all: bool | None = None
) -> tuple[BuiltDistribution, ...]:
    """Write the wheels of a plan, and return the results in the order of the plan.

    With ``stage_all``, all inputs go through the exchange, even inputs that workers might be able to read by path. That
    is the default if the destination is a store, because then the machines have no shared folder.

    `rocwheel.build.building.build` produces the same bytes. Raises `AccessError` if a worker can't read an input, and
    `ChangedFileError` if an input changed before its wheel was assembled. Raises `PoisonedJobError` if an input kills
    workers. Raises `WorkError` if the cluster, the exchange, or the destination fails.
    """
    staging = Staging(settings.exchange, all_files=is_url(settings.destination) if stage_all is None else stage_all)
    check_machines(cluster, settings.exchange, shared_inputs(plan.wheels, staging))
    jobs = _WheelJobs(plan.wheels, settings, staging, progress)
    progress.begin("building", sum(planned_size(wheel.members) for wheel in plan.wheels))
    do_jobs(cluster, jobs.packing(), jobs.take)
    progress.end()
    return tuple(jobs.written[_key(wheel)] for wheel in plan.wheels)


def _key(wheel: PlannedWheel) -> tuple[str, str]:
    return wheel.folder, wheel.name.file_name


class JobTag(msgspec.Struct, frozen=True):
    """The wheel and unit that a job works on, and the job's size in bytes."""

    wheel: int
    unit: int = -1
    """The index of the unit, or -1 for the job that assembles the wheel."""
    size: int = 0


class _WheelJobs:
    """Creates jobs for wheels, largest first, and collects the results of the jobs."""

    def __init__(
        self, wheels: Sequence[PlannedWheel], settings: Settings, staging: Staging, progress: Progress
    ) -> None:
        self.written: dict[tuple[str, str], BuiltDistribution] = {}
        self._wheels = largest_first(wheels)
        self._settings = settings
        self._staging = staging
        self._progress = progress
        self._records: dict[int, list[tuple[int, Piece | Hashed]]] = {}
        self._left: dict[int, int] = {}
        """The number of results that each wheel still needs: members, parts of members, and digests."""

    def packing(self) -> Iterator[Job]:
        """Yield each packing job as soon as workers can read its input."""
        for number, wheel in enumerate(self._wheels):
            units = list(divide_wheel(wheel_members(wheel), self._settings.level))
            self._records[number] = []
            self._left[number] = sum(map(_record_count, units))
            for place, unit in enumerate(units):
                tag = JobTag(number, place)
                members = self._staging.place(unit.members)
                if unit.spans:
                    yield from self._cut_jobs(tag, members[0], unit.spans)
                else:
                    yield self._group_job(tag, 0, members)
            if not units:
                yield self._assembly(number)

    def _group_job(self, tag: JobTag, first: int, members: tuple[PlacedMember, ...]) -> Job:
        size = planned_size([placed.member for placed in members])
        parts: tuple[Job, ...] = ()
        if len(members) > 1:
            parts = tuple(self._group_job(tag, first + index, (one,)) for index, one in enumerate(members))
        tag = msgspec.structs.replace(tag, size=size)
        return Job(_name(members), pack_group, (self._settings, first, members), tag, parts)

    def _cut_jobs(self, tag: JobTag, placed: PlacedMember, spans: Sequence[Span]) -> Iterator[Job]:
        name, settings = _name((placed,)), self._settings
        stored = settings.exchange.put_member(tag.wheel, tag.unit, placed)
        if stream_format(placed.member) is None:
            # Hashing takes the longest, so it starts first.
            yield Job(name, hash_member, (settings, stored, spans), tag)
        whole = planned_size([placed.member])
        for span in spans:
            size = (whole if span.stop is None else span.stop) - span.start
            yield Job(name, pack_cut, (settings, stored, span), msgspec.structs.replace(tag, size=size))

    def take(self, job: Job, value: Piece | Hashed | BuiltDistribution) -> list[Job]:
        """Collect the result of a job. If the result completes a wheel, return the job that assembles the wheel.

        Raises `ChangedFileError` if an input of the wheel has changed; the wheel is not written in that case.
        """
        tag: JobTag = job.tag
        self._progress.advance(tag.size)
        if isinstance(value, BuiltDistribution):
            self.written[_key(self._wheels[tag.wheel])] = value
            return []
        self._records[tag.wheel].append((tag.unit, value))
        self._left[tag.wheel] -= len(value.sections) if isinstance(value, Piece) else 1
        return [] if self._left[tag.wheel] else [self._assembly(tag.wheel)]

    def _assembly(self, number: int) -> Job:
        wheel = self._wheels[number]
        require_same(wheel, self._staging)
        bare = msgspec.structs.replace(wheel, members=(), licenses=())
        # The pieces of a wheel, and the digests of members that were packed in parts, keyed by name.
        records = self._records.pop(number)
        units: dict[int, list[Piece]] = {}
        hashes: dict[int, Hashed] = {}
        for unit, record in records:
            if isinstance(record, Hashed):
                hashes[unit] = record
            else:
                units.setdefault(unit, []).append(record)
        ordered = {unit: sorted(units[unit], key=lambda piece: piece.start) for unit in sorted(units)}
        digests = {}
        for unit, hashed in hashes.items():
            opening = ordered[unit][0].sections[0].opening
            assert opening is not None, "the first part of a member must begin the member"
            if hashed.crc32s != tuple(piece.crc32 for piece in ordered[unit]):
                raise ChangedFileError(opening[0], "changed while it was being packed")
            digests[opening[0]] = hashed.digest
        arguments = (self._settings, bare, *([piece for pieces in ordered.values() for piece in pieces], digests))
        return Job(wheel.name.file_name, assemble, arguments, JobTag(number))


def _name(members: Sequence[PlacedMember]) -> str:
    """Return the name that messages use for a group of members, based on the group's first member."""
    first = members[0]
    name = first.name
    if isinstance(first.member, FileMember):
        name = f"{first.member.artifact}: {first.member.origin}"
    return f"{name} and {count(len(members) - 1, 'more file')}" if len(members) > 1 else name


_TASK = 32 << 20
"""The number of bytes that one worker deflates in about a second. The overhead of a task is only a few milliseconds."""
_STORED_TASK = 128 << 20
"""The number of bytes in a task whose members are not deflated."""
_LEAST = 64 << 10
"""The minimum cost assumed for a file, in bytes, because many small files also take time."""


class Unit(msgspec.Struct, frozen=True):
    """Consecutive members of a wheel that one task packs, or a single member that several tasks pack in spans."""

    members: tuple[PlacedMember, ...]
    spans: tuple[Span, ...] = ()
    """The spans of a single member, with one task for each span; empty for members that are packed as a whole."""


def _record_count(unit: Unit) -> int:
    """Return the number of results that complete a unit: its members, or the parts of its member and their digest."""
    if not unit.spans:
        return len(unit.members)
    return len(unit.spans) + (stream_format(unit.members[0].member) is None)


def divide_wheel(members: Iterable[PlacedMember], level: int) -> Iterator[Unit]:
    """Divide the members of a wheel into units, and yield the units in order. ``level`` is the deflate level; 0 stores.

    Groups small members and splits large members into tasks of about equal size.
    """
    task = _TASK if level else _STORED_TASK
    group: list[PlacedMember] = []
    size = 0
    for placed in members:
        counted = max(planned_size([placed.member]), _LEAST)
        spans = _spans(placed, task)
        if group and (spans or size + counted > task):
            yield Unit(tuple(group))
            group, size = [], 0
        if spans:
            yield Unit((placed,), spans)
        else:
            group.append(placed)
            size += counted
    if group:
        yield Unit(tuple(group))


def _spans(placed: PlacedMember, task: int) -> tuple[Span, ...]:
    """Return the spans that a member is split into, or an empty tuple if the member is packed as a whole.

    The size after edits is not yet known, so the last span is open-ended.
    """
    member, size = placed.member, planned_size([placed.member])
    encoding = stream_format(member)
    if encoding:
        step = STREAM_PIECE if encoding == "xz" else max(task, STREAM_PIECE)
    elif size < CUT_FROM or (isinstance(member, FileMember) and member.compress_for is not None):
        return ()  # the size of compressed device code is not known in advance
    else:
        step = task
    starts = [*range(0, size, step)]
    stops = [*starts[1:], None]
    return tuple(Span(start, stop) for start, stop in zip(starts, stops, strict=True)) if size > step else ()
