"""Builds a plan on a cluster: workers pack pieces and put wheels together, and this process sees only records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.build.building import largest_first
from rocwheel.build.cluster.exchange import Exchange, Staging, check_access, require_same, shared_inputs
from rocwheel.build.cluster.tasks import (
    Assembly,
    Cut,
    Hashed,
    Opening,
    Packed,
    Piece,
    Section,
    Settings,
    WrittenWheel,
    assemble,
    hash_member,
    pack_cut,
    pack_group,
)
from rocwheel.build.cluster.workers import Job, do_jobs, worker_facts
from rocwheel.build.members import PlacedMember, planned_size, wheel_members
from rocwheel.build.plan import FileMember, TarMember
from rocwheel.core.messages import count
from rocwheel.core.reading import ChangedFileError
from rocwheel.wheels.compression import STREAM_PIECE
from rocwheel.wheels.packing import CUT_FROM, Span
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.zip_writer import ZipTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.build.plan import Plan, PlannedWheel
    from rocwheel.core.progress import Progress


_TASK = 32 << 20
"""Bytes that one worker deflates in about a second: what a task costs beside its work, some milliseconds, is little."""
_STORED_TASK = 128 << 20
"""The same where nothing is deflated."""
_LEAST = 64 << 10
"""What a file counts at least: many small ones take time, too."""


class Group(msgspec.Struct, frozen=True):
    """Members that follow one another in their wheel, packed in one task."""

    members: tuple[PlacedMember, ...]


class CutMember(msgspec.Struct, frozen=True):
    """A member that is packed in several tasks, one for each span."""

    placed: PlacedMember
    spans: tuple[Span, ...]


Unit = Group | CutMember


def divide_wheel(members: Sequence[PlacedMember], level: int) -> tuple[Unit, ...]:
    """Return units for the members of a wheel, in their order in it; ``level`` is that of deflate, 0 stores."""
    task = _TASK if level else _STORED_TASK
    return tuple(_units(members, task))


def _units(members: Iterable[PlacedMember], task: int) -> Iterator[Unit]:
    group: list[PlacedMember] = []
    size = 0
    for placed in members:
        counted = max(planned_size([placed.member]), _LEAST)
        spans = _spans(placed, task)
        if group and (spans or size + counted > task):
            yield Group(tuple(group))
            group, size = [], 0
        if spans:
            yield CutMember(placed, spans)
        else:
            group.append(placed)
            size += counted
    if group:
        yield Group(tuple(group))


def _spans(placed: PlacedMember, task: int) -> tuple[Span, ...]:
    """Return the spans that a member is cut into, none where it is packed as a whole.

    Its size after edits is not known yet. So the last span has no end.
    """
    size = planned_size([placed.member])
    step = _step(placed, size, task)
    if not step or size <= step:
        return ()
    starts = [*range(0, size, step)]
    return tuple(Span(start, stop) for start, stop in zip(starts, [*starts[1:], None], strict=True))


def _step(placed: PlacedMember, size: int, task: int) -> int:
    """Return how many bytes of a member go into a task, 0 for one that can't be cut."""
    if is_encoded(placed):
        return STREAM_PIECE if _is_slow(placed) else max(task, STREAM_PIECE)
    # What becomes of device code that is compressed is known to nobody before.
    is_edited = isinstance(placed.member, FileMember) and placed.member.compress_for is not None
    return task if size >= CUT_FROM and not is_edited else 0


def is_encoded(placed: PlacedMember) -> bool:
    """Return whether a member holds a compressed stream of its own."""
    return isinstance(placed.member, TarMember) and placed.member.compression != "none"


def _is_slow(placed: PlacedMember) -> bool:
    return isinstance(placed.member, TarMember) and placed.member.compression == "xz"


Record = Packed | Cut | Hashed


class Collected:
    """The records of one wheel, by the number of the unit that each belongs to."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units
        self._records: list[list[Record]] = [[] for _ in units]
        self._open = len(units)

    def add(self, number: int, record: Record) -> bool:
        """Take a record; return whether it was the last one of the wheel."""
        records = self._records[number]
        records.append(record)
        if _is_complete(self._units[number], records):
            self._open -= 1
        return not self._open

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of the wheel; raise `ChangedFileError` for a file that was written to meanwhile."""
        both = zip(self._units, self._records, strict=True)
        return tuple(piece for unit, records in both for piece in _pieces(unit, records))


def _is_complete(unit: Unit, records: Sequence[Record]) -> bool:
    if isinstance(unit, Group):
        return sum(len(record.members) for record in records if isinstance(record, Packed)) == len(unit.members)
    return len(records) == len(unit.spans) + (not is_encoded(unit.placed))


def _pieces(unit: Unit, records: Sequence[Record]) -> list[Piece]:
    if isinstance(unit, Group):
        packed = sorted((record for record in records if isinstance(record, Packed)), key=lambda one: one.first)
        return [
            Piece(one.piece, tuple(Section(member.size, member.opening, member.digest) for member in one.members))
            for one in packed
        ]
    return _cut_pieces(unit, records)


def _cut_pieces(unit: CutMember, records: Sequence[Record]) -> list[Piece]:
    cuts = sorted((record for record in records if isinstance(record, Cut)), key=lambda cut: cut.span.start)
    hashed = next((record for record in records if isinstance(record, Hashed)), None)
    if hashed is not None and hashed.crc32s != tuple(cut.facts.crc32 for cut in cuts):
        raise ChangedFileError(unit.placed.name, "was written to while it was being packed")
    first, last = cuts[0], cuts[-1]
    opening = Opening(unit.placed.name, unit.placed.mode, first.facts.method, first.facts.bound)
    sections = [
        Section(
            cut.piece.size,
            opening if cut is first else None,
            hashed.digest if hashed and cut is last else None,
            is_last=cut is last,
            is_encoded=hashed is None,
        )
        for cut in cuts
    ]
    return [Piece(cut.piece, (section,)) for cut, section in zip(cuts, sections, strict=True)]


class Destination(msgspec.Struct, frozen=True):
    """Where wheels go, and the moment that dates their members."""

    place: str
    """The folder, or the URL of a store."""
    moment: ZipTime


class _Place(msgspec.Struct, frozen=True):
    """Which wheel and unit the record of a job belongs to, and how many bytes it is about."""

    wheel: int
    unit: int = -1
    size: int = 0


class WheelJobs:
    """Makes jobs for wheels, the largest first, and takes their records."""

    def __init__(
        self,
        wheels: Sequence[PlannedWheel],
        settings: Settings,
        destination: Destination,
        staging: Staging,
        progress: Progress,
    ) -> None:
        self.written: dict[str, WrittenWheel] = {}
        """By folder and file name."""
        self._wheels = largest_first(wheels)
        self._settings = settings
        self._destination = destination
        self._staging = staging
        self._progress = progress
        self._collected: dict[int, Collected] = {}

    def packing(self) -> Iterator[Job]:
        """Yield the jobs that pack, each when its input is where workers read it."""
        for number, wheel in enumerate(self._wheels):
            units = divide_wheel(wheel_members(wheel), self._settings.level)
            self._collected[number] = Collected(units)
            for place, unit in enumerate(units):
                yield from self._unit_jobs(_Place(number, place), unit)
            if not units:
                yield self._assembly(number)

    def _unit_jobs(self, place: _Place, unit: Unit) -> Iterator[Job]:
        if isinstance(unit, Group):
            yield self._group_job(place, 0, self._staging.place(unit.members))
            return
        (placed,) = self._staging.place((unit.placed,))
        yield from self._cut_jobs(place, CutMember(placed, unit.spans))

    def _group_job(self, place: _Place, first: int, members: tuple[PlacedMember, ...]) -> Job:
        size = planned_size([placed.member for placed in members])
        parts: tuple[Job, ...] = ()
        if len(members) > 1:
            parts = tuple(self._group_job(place, first + index, (one,)) for index, one in enumerate(members))
        tag = msgspec.structs.replace(place, size=size)
        return Job(_name(members), pack_group, (self._settings, first, members), tag, parts)

    def _cut_jobs(self, place: _Place, unit: CutMember) -> Iterator[Job]:
        name, settings = _name((unit.placed,)), self._settings
        stored = settings.exchange.put_member(place.wheel, place.unit, unit.placed)
        if not is_encoded(unit.placed):
            # The longest one goes first.
            yield Job(name, hash_member, (settings, stored, unit.spans), place)
        whole = planned_size([unit.placed.member])
        for span in unit.spans:
            size = (whole if span.stop is None else span.stop) - span.start
            yield Job(name, pack_cut, (settings, stored, span), msgspec.structs.replace(place, size=size))

    def take(self, job: Job, value: Record | WrittenWheel) -> list[Job]:
        """Take what a job returned; return the job that puts the wheel together if that was the last.

        Raises `ChangedFileError` where an input of the wheel has changed: it gets no name then.
        """
        place: _Place = job.tag
        self._progress.advance(place.size)
        if isinstance(value, WrittenWheel):
            wheel = self._wheels[place.wheel]
            self.written[f"{wheel.folder}/{wheel.name.file_name}"] = value
            return []
        is_last = self._collected[place.wheel].add(place.unit, value)
        return [self._assembly(place.wheel)] if is_last else []

    def _assembly(self, number: int) -> Job:
        wheel = self._wheels[number]
        require_same(wheel, self._staging)
        bare = msgspec.structs.replace(wheel, members=(), licenses=())
        pieces = self._collected.pop(number).pieces()
        assembly = Assembly(bare, pieces, self._destination.moment, self._destination.place)
        return Job(wheel.name.file_name, assemble, (self._settings, assembly), _Place(number))


def _name(members: Sequence[PlacedMember]) -> str:
    """Return how messages name members: by the file of an artifact, where there is one."""
    first = members[0]
    name = first.name
    if isinstance(first.member, FileMember):
        name = f"{first.member.artifact}: {first.member.origin}"
    return f"{name} and {count(len(members) - 1, 'more file')}" if len(members) > 1 else name


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

    The bytes are those that `rocwheel.build.building` writes. Raises `AccessError` for a worker that can't
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
