"""The jobs of a build on a cluster: those that pack, and the one that puts each wheel together when it is packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.cluster.seam import Job
from rocwheel.core.messages import count
from rocwheel.distributions.zip.writer import ZipTime
from rocwheel.packages.building.build import largest_first
from rocwheel.packages.building.members import planned_size, wheel_members
from rocwheel.packages.clustered.assemble import assemble
from rocwheel.packages.clustered.collect import Collected
from rocwheel.packages.clustered.divide import CutMember, Group, divide_wheel, is_encoded
from rocwheel.packages.clustered.inputs import require_same
from rocwheel.packages.clustered.pack import hash_member, pack_cut, pack_group
from rocwheel.packages.clustered.records import Assembly, Settings, WrittenWheel
from rocwheel.packages.plan import FileMember

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.progress import Progress
    from rocwheel.packages.building.members import PlacedMember
    from rocwheel.packages.clustered.collect import Record
    from rocwheel.packages.clustered.divide import Unit
    from rocwheel.packages.clustered.staging import Staging
    from rocwheel.packages.plan import PlannedWheel

__all__ = ["Destination", "WheelJobs"]


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
