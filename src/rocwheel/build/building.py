"""Builds a plan: workers pack every byte as it is read, and write it straight into its wheel.

The digests of artifacts and the ELF facts of the plan are read earlier. Without a cache, each file is read twice.

A wheel from an earlier build stays if a new one would be identical. The plan and the stamps of all inputs identify its
contents. Its own stamp shows that it still has its bytes. If that stamp differs or is too new, the hashes of its parts
decide.
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
    """A distribution that was written: its path, its size in bytes, and its SHA-256."""

    path: str
    size: int
    sha256: str = ""
    """In hexadecimal."""


class BuildResult(msgspec.Struct, frozen=True):
    """The results of a build, in the order of the plan."""

    version: str
    targets: tuple[str, ...]
    distributions: tuple[BuiltDistribution, ...]
    warnings: tuple[PlanWarning, ...] = ()
    """The warnings of the plan. Those of a whole job also name other distributions in the folder."""
    removed: tuple[str, ...] = ()
    """Unfinished files of killed builds, which a whole job removes."""
    members: PackedCount = PackedCount()
    """How many members were packed, and how many came from a cache."""
    standing: tuple[str, ...] = ()
    """Existing wheels that were left unchanged because new ones would be identical; their members count as kept."""
    manifest: str = ""
    """The path or URL of the manifest that a whole job writes; the checksums are next to it."""


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
    """Write every distribution of a plan to ``dist_dir``; ``level`` is the libdeflate level, and 0 stores.

    Members in the ``kept`` store are not packed again. The bytes depend only on the plan, the level, and the date.
    Raises `WorkError` if the folder can't be written or the disk is full; then no unfinished files appear.
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
    """Reports progress by source bytes: edits change the number of bytes, and generated members have none."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._left = 0

    def expect(self, size: int) -> None:
        """Note that the last member is done and that the next one has ``size`` source bytes."""
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
    """Write a source distribution and return the result. Raises `WorkError` if the folder can't be written."""
    path = dist_dir / sdist.folder / sdist_name(sdist.distribution, sdist.version)
    members = {name: text.encode() for name, text in sdist.files.items()}
    data = write_sdist(path, sdist_stem(sdist.distribution, sdist.version), members, mtime=source_date.seconds)
    return BuiltDistribution(str(path), len(data), hashlib.sha256(data).hexdigest())


_MODE = 0o644


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """The stored facts about a written wheel."""

    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str
    """The SHA-256 of the whole file, in hexadecimal."""
    is_settled: bool = False
    """Whether a change after the bytes were checked would show in the stamp."""


class ReusableWheels:
    """Finds existing identical wheels by notes in a store; ``level`` and ``date`` are those of the build."""

    def __init__(self, store: EntryStore, level: int, date: SourceDate) -> None:
        self._store = store
        self._settings = (level, date.seconds, msgspec.structs.astuple(date.zip_time))
        self._keys: dict[Path, bytes] = {}

    def find(self, wheel: PlannedWheel, path: Path, executor: Executor) -> _Note | None:
        """Return the note on an identical wheel at ``path``, or `None`.

        Workers of the ``executor`` hash a wheel if its stamp doesn't decide.
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
        """Store the facts about a written wheel that `find` had not found."""
        if key := self._keys.get(written.path):
            self._keep(key, _Note(written.stamp, written.seal, written.members, written.sha256))

    def _keep(self, key: bytes, note: _Note) -> None:
        self._store.put(key, msgspec.msgpack.encode(note))

    def _key(self, wheel: PlannedWheel, path: Path) -> bytes | None:
        """Return a key that changes if the wheel would have other bytes, or `None` if only reading would show that."""
        now = time.time_ns()
        members = [*wheel.members, *wheel.licenses]
        if not all(is_known(file.source, now) for member in members for file in member_files(member)):
            return None
        has_xz = any(isinstance(member, TarMember) and member.compression == "xz" for member in members)
        identity = _identity() + (xz_identity() if has_xz else b"")
        try:
            described = msgspec.msgpack.encode(("standing", identity, self._settings, str(path.absolute()), wheel))
        except UnicodeEncodeError:  # a name that is not valid text
            return None
        return hashlib.sha256(described).digest()


@cache
def _identity() -> bytes:
    """Return a value that differs if the same plan may give other bytes: per version of the code and codecs."""
    return source_hash(Path(rocwheel.__file__).parent) + codec_identity()


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file that has the mode of wheels, or `None` for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == _MODE else None


def remove_unfinished(dist_dir: Path) -> tuple[Path, ...]:
    """Remove the hidden files that killed builds left below ``dist_dir``, and return their paths.

    Files that another build is writing stay.
    """
    folders = [dist_dir, *(path for path in dist_dir.glob("*") if path.is_dir())]
    return tuple(path for folder in folders for path in remove_abandoned(folder))


def older_versions(dist_dir: Path, version: str) -> tuple[str, ...]:
    """Return the other versions of the rocm distributions in a folder and the folders in it."""
    found = {path.name.split("-")[1].removesuffix(".tar.gz") for path in dist_dir.glob("**/rocm-*") if path.is_file()}
    return tuple(sorted(found - {version}))


def find_leftovers(dist_dir: Path, built: Iterable[str]) -> tuple[PlanWarning, ...]:
    """Return a warning about distributions below ``dist_dir`` that were not just built, if there are any.

    An index of the folder would list them, and an installer could prefer them.
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
    text = f"contains distributions that are not from this build: {', '.join(names)}"
    remedy = "An index would list them. Remove them if they are from earlier builds."
    return (PlanWarning("earlier-build", str(dist_dir), text, remedy, tuple(names)),)
