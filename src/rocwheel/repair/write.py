"""Writes repaired wheels. Members that don't change are copied in compressed form."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileStamp, open_unchanged
from rocwheel.core.workers import open_workers, raise_all, worker_count
from rocwheel.core.writing import atomic_file, check_destination, safe_mode
from rocwheel.environment.read_tree import real_paths
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlan, plan_repairs
from rocwheel.wheels.content import BytesContent, PatchedContent
from rocwheel.wheels.metadata import add_requirements, set_wheel_fields
from rocwheel.wheels.packing import budget_for
from rocwheel.wheels.sbom import SBOM_NAME, change_notes, changed_bill
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.writing import write_wheels
from rocwheel.wheels.zip_directory import find_dist_info, read_directory
from rocwheel.wheels.zip_reader import UnpackedMembers, ZipMember, open_unpacked, read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from rocwheel.core.reading import FileRange
    from rocwheel.environment.run_path_choice import SetRunpath
    from rocwheel.wheels.writing import WheelPacker

    Packing: TypeAlias = Callable[[], AbstractContextManager[WheelPacker]]
    from collections.abc import Collection

    from rocwheel.core.errors import RocwheelError


_COPY_STEP = 4 << 20
_MOST_OPEN = 64


class KnownWheels(NamedTuple):
    """Data that was read from the wheels for their plans."""

    stamps: Mapping[str, FileStamp] = MappingProxyType({})
    """The file stamps from before the wheels were read, keyed by path."""
    unpacked: UnpackedMembers | None = None
    """The unpacked members.

    Members without edits are closed immediately, and all other members after they are written.
    """


_NOTHING_KNOWN = KnownWheels()


def write_repairs(
    plans: Sequence[RepairPlan],
    dest_dir: Path,
    executor: Executor,
    source_date: SourceDate,
    *,
    known: KnownWheels = _NOTHING_KNOWN,
    progress: Progress = SILENT,
) -> list[Path]:
    """Write the repaired wheels to ``dest_dir`` and return their paths.

    A wheel that needs no repair is copied unchanged.

    The bytes depend only on the wheels, the plans, and the date. ``known`` data isn't read again. Raises `InputError`
    before writing anything if one of the wheels is in that folder, or if two repaired wheels would have the same name.
    While writing a wheel, raises `InputError` for damaged members, `ChangedFileError` if the wheel changed, and
    `WorkError` if the folder can't be written. In these cases, no part of that wheel remains.
    """
    targets = _targets(plans, dest_dir)
    todo = {f"{plan.wheel}!{name}" for plan in plans for name in plan.edits}
    _keep_edited(known.unpacked, todo)
    for plan, target in zip(plans, targets, strict=True):
        todo -= {f"{plan.wheel}!{name}" for name in plan.edits}
        if plan.changes:
            members = read_directory(Path(plan.wheel))
            _require_planned(plan, known)
            progress.begin(f"repairing {Path(plan.wheel).name}", sum(member.size for member in members))
            budget = budget_for(worker_count(0))
            packing = partial(write_wheels, executor, source_date.zip_time, progress=progress, budget=budget)
            _rewrite(plan, members, target, packing, known.unpacked)
            progress.end()
        else:
            _copy(plan, target, known)
        _keep_edited(known.unpacked, todo)
    return targets


def _keep_edited(unpacked: UnpackedMembers | None, sources: AbstractSet[str]) -> None:
    if unpacked is not None:
        unpacked.keep_only(lambda member: member.source in sources)


def _require_planned(plan: RepairPlan, known: KnownWheels) -> None:
    """Raise `ChangedFileError` if the opened wheel changed after the plan was created."""
    if plan.wheel in known.stamps:
        known.stamps[plan.wheel].require(Path(plan.wheel).stat(), plan.wheel)


def _copy(plan: RepairPlan, target: Path, known: KnownWheels) -> None:
    with atomic_file(target) as copy, open_unchanged(Path(plan.wheel)) as file:
        _require_planned(plan, known)
        while piece := file.read(_COPY_STEP):
            copy.write(piece)


def _targets(plans: Sequence[RepairPlan], dest_dir: Path) -> list[Path]:
    sources: dict[Path, Path] = {}
    for plan in plans:
        source, target = Path(plan.wheel), dest_dir / plan.file_name
        if dest_dir.resolve() in {source.parent.resolve(), source.resolve().parent}:
            found = f"contains {source.name} itself"
            raise InputError(dest_dir, found, expected="another folder", remedy="Change --output.")
        if target in sources:
            found = f"would get the same name as {sources[target]}: {target.name}"
            raise InputError(source, found, remedy="Write the repaired wheels to different folders.")
        sources[target] = source
    return list(sources)


def _rewrite(
    plan: RepairPlan,
    members: Sequence[ZipMember],
    target: Path,
    packing: Packing,
    kept: UnpackedMembers | None,
) -> None:
    dist_info = find_dist_info(Path(plan.wheel), (member.name for member in members))
    left_out = {f"{dist_info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", SBOM_NAME)} | {*plan.dropped}
    digests = {} if kept is None else kept.digests
    # Unpacked libraries stay open until the packer has read their last byte.
    with ExitStack() as stack, packing() as packer:
        unpacked = _Unpacked(stack, packer, kept)
        wheel = packer.open(target, dist_info=dist_info)
        for member in members:
            if member.name in left_out:
                continue
            edit = plan.edits.get(member.name)
            if edit is None:
                wheel.add_packed(member, safe_mode(member.mode), digests.get(member))
            else:
                wheel.add(member.name, safe_mode(member.mode), _patched(unpacked.open(member), member, edit))
        for name, text in plan.added.items():
            wheel.add(name, 0o644, BytesContent(text.encode()))
        wheel.close(_metadata(plan, members, dist_info))


class _Unpacked:
    """Unpacked members. Only a limited number of unpacked members are open at a time."""

    def __init__(self, stack: ExitStack, packer: WheelPacker, kept: UnpackedMembers | None) -> None:
        self._stack = stack
        self._kept = kept
        self._packer = packer
        self._open = 0

    def open(self, member: ZipMember) -> FileRange:
        """Return the unpacked bytes. The bytes remain readable until the packer has written them."""
        if self._kept is not None and (found := self._kept.find(member)):
            return found
        if self._open == _MOST_OPEN:
            self._packer.drain()
            self._stack.close()
            self._open = 0
        self._open += 1
        return self._stack.enter_context(open_unpacked(member))[0]


def _patched(unpacked: FileRange, member: ZipMember, edit: SetRunpath) -> PatchedContent:
    with unpacked.view() as data:
        return PatchedContent(unpacked, plan_runpath(data, edit.value, edit.tag, name=member.source))


def _metadata(plan: RepairPlan, members: Sequence[ZipMember], dist_info: str) -> dict[str, bytes]:
    texts = {
        name: read_member(member)
        for name in ("METADATA", "WHEEL")
        for member in members
        if member.name == f"{dist_info}/{name}"
    }
    edited = texts | {
        "METADATA": add_requirements(texts.get("METADATA", b""), plan.requires),
        "WHEEL": set_wheel_fields(texts.get("WHEEL", b""), tags=plan.tags, platlib=plan.is_platlib),
    }
    return {name: edited[name] for name in texts} | changed_bill(members, dist_info, _notes(plan))


def _notes(plan: RepairPlan) -> str:
    """Return the note for the bill of materials, which lists the changes and the changed files."""
    metadata = {"METADATA": bool(plan.requires), "WHEEL": bool(plan.tags) or plan.is_platlib}
    changed = [*plan.edits, *(name for name, has_changed in metadata.items() if has_changed)]
    return change_notes("rocwheel repair", {"changed": changed, "added": [*plan.added], "left out": plan.dropped})


class RepairResult(msgspec.Struct, frozen=True):
    """The results of a repair, and the written files."""

    wheels: tuple[RepairPlan, ...]
    """For each wheel, the changes and the problems that no repair can fix."""
    written: tuple[str, ...]
    """The paths of the repaired wheels. Empty if nothing had to be written."""


class RepairJob(msgspec.Struct, frozen=True):
    """The wheels to repair, and the destination."""

    wheels: tuple[Path, ...]
    with_packages: tuple[Path, ...]
    """The packages that are installed with the wheels."""
    dest_dir: Path | None
    """The folder for the repaired wheels, or `None` to write nothing."""
    options: RepairOptions

    def run(self, *, progress: Progress = SILENT, problems: list[RocwheelError] | None = None) -> RepairResult:
        """Plan the repair of each wheel, and write the repaired wheels with the date from ``SOURCE_DATE_EPOCH``.

        Raises the same errors as `check_destination`, `plan_repairs`, and `write_repairs`. Also raises `InputError` for
        an output folder whose name looks like a wheel's. If ``problems`` is a list, errors about individual wheels are
        appended to it, and all other wheels are repaired.
        """
        if self.dest_dir is not None:
            check_destination(self.dest_dir, option="--output")
            if self.dest_dir.suffix == ".whl":
                fault, expected = "is named like a wheel", "a folder for the repaired wheels"
                raise InputError(self.dest_dir, fault, expected=expected, remedy="Change --output.")
        stamps = _stamps(self.wheels)
        found: list[RocwheelError] = [] if problems is None else problems
        with closing(UnpackedMembers()) as unpacked:
            kept = None if self.dest_dir is None else unpacked
            plans = plan_repairs(self.wheels, self.with_packages, self.options, found, kept, progress)
            if problems is None:
                raise_all("wheels", found)
            if self.dest_dir is None:
                return RepairResult(tuple(plans), ())
            date, known = SourceDate.from_environment(os.environ), KnownWheels(stamps, unpacked)
            with open_workers(worker_count(0)) as executor:
                written = write_repairs(plans, self.dest_dir, executor, date, known=known, progress=progress)
        return RepairResult(tuple(plans), tuple(map(str, written)))


def _stamps(wheels: Collection[Path]) -> dict[str, FileStamp]:
    """Return the stamps of wheels, including wheels in folders, keyed by path.

    Raises `InputError` for a missing path.
    """
    # The reader reports unreadable files in a folder together with all its other errors.
    return {str(path): FileStamp.at(path) for path in real_paths(wheels).values() if path in wheels or path.exists()}
