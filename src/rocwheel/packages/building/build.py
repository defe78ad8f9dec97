"""Building a plan: every byte is packed as it is read, by the executor's workers, and written straight into its wheel.

The digests of artifacts and the ELF facts of the plan were read before: without a cache, each file is read twice.
"""

from __future__ import annotations

import hashlib
from functools import partial, reduce
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.formats.sdist import sdist_name, sdist_stem, write_sdist
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.distributions.formats.write_wheel import DEFAULT_LEVEL, write_wheels
from rocwheel.distributions.packing.delivery import PackedCount
from rocwheel.foundation.progress import SILENT, Progress, Silent
from rocwheel.packages.building.members import add_member, planned_size, wheel_members, wheel_metadata
from rocwheel.packages.building.standing import StandingWheels
from rocwheel.packages.plan import Plan, PlannedSdist, PlannedWheel, PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.foundation.cache.store import Store
    from rocwheel.packages.building.standing import Standing

__all__ = ["BuildResult", "BuiltDistribution", "build", "largest_first", "write_planned_sdist"]


class BuiltDistribution(msgspec.Struct, frozen=True):
    """A distribution that was written: the path of its file, with the size of that in bytes and its SHA-256."""

    path: str
    size: int
    sha256: str = ""
    """In hexadecimal digits."""


class BuildResult(msgspec.Struct, frozen=True):
    """What a build made, in the order of the plan."""

    version: str
    targets: tuple[str, ...]
    distributions: tuple[BuiltDistribution, ...]
    warnings: tuple[PlanWarning, ...] = ()
    """The warnings of the plan; those of a whole job also name other distributions in the folder."""
    removed: tuple[str, ...] = ()
    """Unfinished files of builds that were killed, which a whole job removes."""
    members: PackedCount = PackedCount()
    """How many members were packed, and how many a cache had."""
    standing: tuple[str, ...] = ()
    """Wheels that stood there as they would be written, and were left alone; their members count as kept."""
    manifest: str = ""
    """The path or URL of the manifest that a whole job writes; the checksums stand beside it."""


def build(
    plan: Plan,
    dist_dir: Path,
    executor: Executor,
    *,
    level: int = DEFAULT_LEVEL,
    source_date: SourceDate = SourceDate(),  # noqa: B008 (a frozen value)
    progress: Progress = SILENT,
    kept: Store | None = None,
) -> BuildResult:
    """Write every distribution of a plan to ``dist_dir``; ``level`` is libdeflate's, 0 stores.

    What the ``kept`` store has is not packed again. The bytes depend on the plan, the level and the date alone. Raises
    `WorkError` when the folder can't be written or the disk is full; unfinished files don't appear then.
    """
    progress.begin("building", sum(map(_source_size, plan.wheels)))
    counted = _Counted(progress)
    standing = StandingWheels(kept, level, source_date) if kept else None
    left: dict[Path, Standing] = {}
    moment = source_date.zip_time
    with write_wheels(executor, moment, level=level, progress=counted, kept=kept, is_hashed=True) as packer:
        for wheel in largest_first(plan.wheels):
            path = _path(wheel, dist_dir)
            if standing and (found := standing.find(wheel, path, executor)):
                left[path] = found
                progress.advance(_source_size(wheel))
                continue
            target = packer.open(path, dist_info=wheel.name.dist_info)
            for placed in wheel_members(wheel):
                packer.call(partial(counted.expect, planned_size([placed.member])))
                add_member(target, placed, mtime=source_date.seconds, executor=executor, is_cached=kept is not None)
            packer.call(partial(counted.expect, 0))
            target.close(wheel_metadata(wheel))
    if standing:
        for written in packer.written:
            standing.note(written)
    digests = packer.digests | {path: one.sha256 for path, one in left.items()}
    paths = [_path(wheel, dist_dir) for wheel in plan.wheels]
    built = tuple(BuiltDistribution(str(path), path.stat().st_size, digests[path]) for path in paths)
    built += tuple(write_planned_sdist(sdist, dist_dir, source_date) for sdist in plan.sdists)
    progress.end()
    count = reduce(PackedCount.left, (one.members for one in left.values()), packer.count)
    standing_paths = tuple(str(path) for path in paths if path in left)
    return BuildResult(plan.version, plan.targets, built, plan.warnings, members=count, standing=standing_paths)


class _Counted(Silent):
    """Tells a progress of the bytes that members come from: edits give others, and generated members have none."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._left = 0

    def expect(self, size: int) -> None:
        """Say that the last member is done, and that the next comes from ``size`` bytes."""
        self._progress.advance(self._left)
        self._left = size

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more bytes of the member are packed."""
        amount = min(amount, self._left)
        self._left -= amount
        self._progress.advance(amount)


def _source_size(wheel: PlannedWheel) -> int:
    return planned_size([*wheel.members, *wheel.licenses])


def _path(wheel: PlannedWheel, dist_dir: Path) -> Path:
    return dist_dir / wheel.folder / wheel.name.file_name


def largest_first(wheels: Iterable[PlannedWheel]) -> list[PlannedWheel]:
    """Return wheels sorted by size: the small members at the end keep all workers busy to the last moment."""
    return sorted(wheels, key=lambda wheel: (-planned_size(wheel.members), wheel.name.file_name))


def write_planned_sdist(sdist: PlannedSdist, dist_dir: Path, source_date: SourceDate) -> BuiltDistribution:
    """Write a source distribution, and return what was written; raise `WorkError` when the folder can't be written."""
    path = dist_dir / sdist.folder / sdist_name(sdist.distribution, sdist.version)
    members = {name: text.encode() for name, text in sdist.files.items()}
    data = write_sdist(path, sdist_stem(sdist.distribution, sdist.version), members, mtime=source_date.seconds)
    return BuiltDistribution(str(path), len(data), hashlib.sha256(data).hexdigest())
