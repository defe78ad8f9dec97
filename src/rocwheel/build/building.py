"""Builds a plan: every byte is packed as it is read, by the executor's workers, and written straight into its wheel.

The digests of artifacts and the ELF facts of the plan were read before: without a cache, each file is read twice.

A wheel of an earlier build that would be the same is left alone. What it is made of is known by the plan and the stamps
of all its inputs; that it still has its bytes, by its own stamp. Where that is another one, or too new to tell, the
hashes of its parts tell.
"""

from __future__ import annotations

import hashlib
import stat
import time
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import rocwheel
from rocwheel.build.members import add_member, planned_size, wheel_members, wheel_metadata
from rocwheel.build.plan import Plan, PlannedSdist, PlannedWheel, PlanWarning, TarMember, member_files
from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.core.hashing import Seal, is_intact, source_hash
from rocwheel.core.progress import SILENT, Progress, Silent
from rocwheel.core.reading import FileRange, FileStamp, is_settled
from rocwheel.core.scratch import remove_abandoned
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES
from rocwheel.wheels.member_cache import is_known
from rocwheel.wheels.member_compression import codec_identity, xz_identity
from rocwheel.wheels.packing import PackedCount
from rocwheel.wheels.sdist import SourceDate, sdist_name, sdist_stem, write_sdist
from rocwheel.wheels.writing import write_wheels

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from rocwheel.core.cache import EntryStore
    from rocwheel.wheels.writing import WheelPacker, WrittenWheel


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
    level: int = WHEEL_LEVEL,
    source_date: SourceDate = SourceDate(),  # noqa: B008 (a frozen value)
    progress: Progress = SILENT,
    kept: EntryStore | None = None,
) -> BuildResult:
    """Write every distribution of a plan to ``dist_dir``; ``level`` is libdeflate's, 0 stores.

    What the ``kept`` store has is not packed again. The bytes depend on the plan, the level and the date alone. Raises
    `WorkError` when the folder can't be written or the disk is full; unfinished files don't appear then.
    """
    progress.begin("building", sum(map(_source_size, plan.wheels)))
    counted, moment = _Counted(progress), source_date.zip_time
    reusable = ReusableWheels(kept, level, source_date) if kept else None
    left: dict[Path, _Note] = {}
    with write_wheels(executor, moment, level=level, progress=counted, kept=kept, is_hashed=True) as packer:
        for wheel in largest_first(plan.wheels):
            path = _path(wheel, dist_dir)
            if reusable and (found := reusable.find(wheel, path, executor)):
                left[path] = found
                progress.advance(_source_size(wheel))
            else:
                _pack(wheel, path, packer, counted, source_date.seconds, executor, is_cached=reusable is not None)
    if reusable:
        for written in packer.written:
            reusable.note(written)
    digests = packer.digests | {path: one.sha256 for path, one in left.items()}
    paths = [_path(wheel, dist_dir) for wheel in plan.wheels]
    built = tuple(BuiltDistribution(str(path), path.stat().st_size, digests[path]) for path in paths)
    built += tuple(write_planned_sdist(sdist, dist_dir, source_date) for sdist in plan.sdists)
    progress.end()
    count = reduce(PackedCount.left, (one.members for one in left.values()), packer.count)
    standing = tuple(str(path) for path in paths if path in left)
    return BuildResult(plan.version, plan.targets, built, plan.warnings, members=count, standing=standing)


def _pack(
    wheel: PlannedWheel,
    path: Path,
    packer: WheelPacker,
    counted: _Counted,
    mtime: int,
    executor: Executor,
    *,
    is_cached: bool,
) -> None:
    target = packer.open(path, dist_info=wheel.name.dist_info)
    for placed in wheel_members(wheel):
        packer.call(partial(counted.expect, planned_size([placed.member])))
        add_member(target, placed, mtime=mtime, executor=executor, is_cached=is_cached)
    packer.call(partial(counted.expect, 0))
    target.close(wheel_metadata(wheel))


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


_MODE = 0o644


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a wheel that was written."""

    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str
    """Of the whole file, in hexadecimal digits."""
    is_settled: bool = False
    """Whether a change after its bytes were looked at would show in its stamp."""


class ReusableWheels:
    """Tells which wheels stand there already, by notes in a store; ``level`` and ``date`` are those of the build."""

    def __init__(self, store: EntryStore, level: int, date: SourceDate) -> None:
        self._store = store
        self._settings = (level, date.seconds, msgspec.structs.astuple(date.zip_time))
        self._keys: dict[Path, bytes] = {}

    def find(self, wheel: PlannedWheel, path: Path, executor: Executor) -> _Note | None:
        """Return what was noted of a wheel that stands at ``path`` as it would be written; else none.

        Workers of the ``executor`` hash a wheel whose stamp does not tell.
        """
        key = self._key(wheel, path)
        if key is None:
            return None
        self._keys[path] = key
        entry = self._store.get(key)
        status = _status(path)
        if entry is None or status is None:
            return None
        note, stamp = msgspec.msgpack.decode(entry.facts, type=_Note), FileStamp.of(status)
        if note.is_settled and note.stamp == stamp:
            return note
        read_at = time.time_ns()
        if not is_intact(FileRange(str(path), 0, stamp.size, stamp), note.seal, executor):
            return None
        self._keep(key, msgspec.structs.replace(note, stamp=stamp, is_settled=is_settled(stamp, read_at)))
        return note

    def note(self, written: WrittenWheel) -> None:
        """Keep what a wheel is like that was written after `find` had not found it."""
        if key := self._keys.get(written.path):
            self._keep(key, _Note(written.stamp, written.seal, written.members, written.sha256))

    def _keep(self, key: bytes, note: _Note) -> None:
        self._store.put(key, msgspec.msgpack.encode(note))

    def _key(self, wheel: PlannedWheel, path: Path) -> bytes | None:
        """Return what is another value wherever the wheel would have other bytes; none if only reading tells that."""
        now = time.time_ns()
        members = [*wheel.members, *wheel.licenses]
        if not all(is_known(file.source, now) for member in members for file in member_files(member)):
            return None
        has_xz = any(isinstance(member, TarMember) and member.compression == "xz" for member in members)
        identity = _identity() + (xz_identity() if has_xz else b"")
        try:
            described = msgspec.msgpack.encode(("standing", identity, self._settings, str(path.absolute()), wheel))
        except UnicodeEncodeError:  # a name that is no text
            return None
        return hashlib.sha256(described).digest()


@cache
def _identity() -> bytes:
    """Return what differs wherever the same plan may give other bytes: between versions of the code and of codecs."""
    return source_hash(Path(rocwheel.__file__).parent) + codec_identity()


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file that has the mode of wheels; none for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == _MODE else None


def remove_unfinished(dist_dir: Path) -> tuple[Path, ...]:
    """Remove the hidden files that killed builds have left below ``dist_dir``, and return their paths.

    Files that another build is writing meanwhile stay.
    """
    folders = [dist_dir, *(path for path in dist_dir.glob("*") if path.is_dir())]
    return tuple(path for folder in folders for path in remove_abandoned(folder))


def find_leftovers(dist_dir: Path, built: Iterable[str]) -> tuple[PlanWarning, ...]:
    """Return a warning about the distributions below ``dist_dir`` that are not among the paths just built, if any.

    An index over the folder would list them, and an installer could prefer them.
    """
    found = (
        path
        for suffix in DISTRIBUTION_SUFFIXES
        for folder in ("", "*/")
        for path in dist_dir.glob(f"{folder}*{suffix}")
    )
    present = {str(path): path for path in found}
    others = sorted(set(present) - set(built))
    names = [present[path].relative_to(dist_dir).as_posix() for path in others]
    names = [name for name in names if not name.rpartition("/")[2].startswith(".")]
    if not names:
        return ()
    text = f"holds distributions that this build did not make: {', '.join(names)}"
    remedy = "An index would list them. Remove them if they are from earlier builds."
    return (PlanWarning("earlier-build", str(dist_dir), text, remedy, tuple(names)),)
