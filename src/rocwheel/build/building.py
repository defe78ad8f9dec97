"""Builds a plan: workers pack each file while they read it, and write the packed bytes directly into the wheel.

Hashing the artifacts and reading the ELF facts for the plan happen earlier, so without a cache, each file is read
twice.

A wheel from an earlier build is reused if a new wheel would be identical. The plan and the stamps of all inputs
identify the expected contents. The stamp of the wheel itself shows that its bytes are unchanged. If that stamp differs
or is too recent, the wheel is hashed instead.
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
from rocwheel.core.messages import first_of
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
    """The SHA-256, in hexadecimal."""


class BuildResult(msgspec.Struct, frozen=True):
    """The results of a build, in the order of the plan."""

    version: str
    targets: tuple[str, ...]
    distributions: tuple[BuiltDistribution, ...]
    warnings: tuple[PlanWarning, ...] = ()
    """The warnings of the plan.

    The result of a complete job also includes a warning about other distributions in the folder.
    """
    removed: tuple[str, ...] = ()
    """Unfinished files that killed builds left behind and that a complete job removed."""
    members: PackedCount = PackedCount()
    """The number of members that were packed, and the number that came from a cache."""
    standing: tuple[str, ...] = ()
    """Existing wheels that were left unchanged because new ones would be identical.

    Their members count as members that came from a cache.
    """
    manifest: str = ""
    """The path or URL of the manifest that a complete job writes. The checksums file is next to it."""


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
    """Write every distribution of a plan to ``dist_dir``.

    ``level`` is the libdeflate level; 0 stores without compression.

    Members in the ``kept`` store are not packed again. The bytes depend only on the plan, the level, and the date.
    Raises `WorkError` if the folder can't be written to or the disk is full. In that case, no unfinished files remain.
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
    """Reports progress in source bytes, because edits change the size of files and generated members have no source."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._left = 0

    def expect(self, size: int) -> None:
        """Record that the last member is done and that the next member has ``size`` source bytes."""
        self._progress.advance(self._left)
        self._left = size

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more bytes of the member have been packed."""
        amount = min(amount, self._left)
        self._left -= amount
        self._progress.advance(amount)


def _source_size(wheel: PlannedWheel) -> int:
    return planned_size([*wheel.members, *wheel.licenses])


def _path(wheel: PlannedWheel, dist_dir: Path) -> Path:
    return dist_dir / wheel.folder / wheel.name.file_name


def largest_first(wheels: Iterable[PlannedWheel]) -> list[PlannedWheel]:
    """Return wheels sorted from largest to smallest, so that small members at the end keep all workers busy."""
    return sorted(wheels, key=lambda wheel: (-planned_size(wheel.members), wheel.name.file_name))


def write_planned_sdist(sdist: PlannedSdist, dist_dir: Path, source_date: SourceDate) -> BuiltDistribution:
    """Write a source distribution and return the result. Raises `WorkError` if the folder can't be written to."""
    path = dist_dir / sdist.folder / sdist_name(sdist.distribution, sdist.version)
    members = {name: text.encode() for name, text in sdist.files.items()}
    data = write_sdist(path, sdist_stem(sdist.distribution, sdist.version), members, mtime=source_date.seconds)
    return BuiltDistribution(str(path), len(data), hashlib.sha256(data).hexdigest())


_MODE = 0o644


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """The stored information about a written wheel."""

    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str
    """The SHA-256 of the entire file, in hexadecimal."""
    is_settled: bool = False
    """Whether the stamp would reveal any change since the bytes were checked."""


class ReusableWheels:
    """Finds existing identical wheels from notes in a store.

    ``level`` and ``date`` are the settings of the current build.
    """

    def __init__(self, store: EntryStore, level: int, date: SourceDate) -> None:
        self._store = store
        self._settings = (level, date.seconds, msgspec.structs.astuple(date.zip_time))
        self._keys: dict[Path, bytes] = {}

    def find(self, wheel: PlannedWheel, path: Path, executor: Executor) -> _Note | None:
        """Return the note about an identical wheel at ``path``, or `None`.

        The ``executor``'s workers hash the wheel if its stamp is inconclusive.
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
        """Store a note about a written wheel that `find` did not find."""
        if key := self._keys.get(written.path):
            self._keep(key, _Note(written.stamp, written.seal, written.members, written.sha256))

    def _keep(self, key: bytes, note: _Note) -> None:
        self._store.put(key, msgspec.msgpack.encode(note))

    def _key(self, wheel: PlannedWheel, path: Path) -> bytes | None:
        """Return a key that changes with the wheel's bytes, or `None` if the inputs must be read to detect a change."""
        now = time.time_ns()
        members = [*wheel.members, *wheel.licenses]
        if not all(is_known(file.source, now) for member in members for file in member_files(member)):
            return None
        has_xz = any(isinstance(member, TarMember) and member.compression == "xz" for member in members)
        identity = _identity() + (xz_identity() if has_xz else b"")
        try:
            described = msgspec.msgpack.encode(("standing", identity, self._settings, str(path.absolute()), wheel))
        except UnicodeEncodeError:  # a name can contain surrogates
            return None
        return hashlib.sha256(described).digest()


@cache
def _identity() -> bytes:
    """Return a value that changes with the code and the codecs, because the plan may then produce different bytes."""
    return source_hash(Path(rocwheel.__file__).parent) + codec_identity()


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a regular file with the permissions of a wheel, or `None` for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == _MODE else None


def remove_unfinished(dist_dir: Path) -> tuple[Path, ...]:
    """Remove the hidden files that killed builds left behind below ``dist_dir``, and return their paths.

    Files that another build is still writing are not removed.
    """
    folders = [dist_dir, *(path for path in dist_dir.glob("*") if path.is_dir())]
    return tuple(path for folder in folders for path in remove_abandoned(folder))


def older_versions(dist_dir: Path, version: str) -> tuple[str, ...]:
    """Return the versions of ``rocm`` distributions in a folder and its subfolders, except the given version."""
    found = {path.name.split("-")[1].removesuffix(".tar.gz") for path in dist_dir.glob("**/rocm-*") if path.is_file()}
    return tuple(sorted(found - {version}))


def find_leftovers(dist_dir: Path, built: Iterable[str]) -> tuple[PlanWarning, ...]:
    """Return a warning if ``dist_dir`` or its subfolders contain distributions that are not from this build.

    An index of the folder would list these distributions, and an installer might prefer them.
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
    text = f"contains distributions that are not from this build: {first_of(names)}"
    remedy = "An index of this folder would list them. If they are from earlier builds, remove them."
    return (PlanWarning("earlier-build", str(dist_dir), text, remedy, tuple(names)),)
