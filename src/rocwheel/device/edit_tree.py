"""Edits the device code in a file tree: decides on an action for each file, and copies files that aren't edited."""

from __future__ import annotations

import enum
import logging
import os
import shutil
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import CodePlace, NotTrimmableError, TargetId, is_code_object, parse_target_id
from rocwheel.binary.kind import is_binary, is_bundle, is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, open_unchanged
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.core.writing import new_folder, safe_mode
from rocwheel.device.edit_bundles import Prune, UnlinkedCodeError, is_any_kept, list_places
from rocwheel.device.edit_file import (
    RewriteReport,
    holds_places,
    require_sound_image,
    rewrite_device_code,
    signed_warning,
)
from rocwheel.device.kpack_code import GivenArchives, is_named_archive, open_kpack_code
from rocwheel.targets.kernel_files import is_kernel_file, targets_in_path
from rocwheel.wheels.binaries import Binary, find_binaries, inner_wheel_warnings, read_found
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_headers import ZIP_MAGIC
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import PurePath

    from rocwheel.core.reading import Data
    from rocwheel.device.kpack_code import CodeUnit


_PERMISSIONS = "Check its permissions."


def list_tree(folder: Path) -> list[Path]:
    """Return all paths below ``folder``; raise `InputError` or `ProblemsError` for folders that can't be listed."""
    errors: list[OSError] = []
    walk = os.walk(folder, onerror=errors.append)
    paths = sorted(Path(root, name) for root, folders, files in walk for name in (*folders, *files))
    problems = [InputError(e.filename, f"can't be listed ({e.strerror})", remedy=_PERMISSIONS) for e in errors]
    raise_all(str(folder), problems)
    return paths


def require_regular(path: Path) -> None:
    """Raise `InputError` for a path that is neither a file nor a folder. Reading a pipe or device might never end."""
    if not path.is_file():
        raise InputError(path, "isn't a regular file", expected="only files, folders, and links", remedy="Remove it.")


def copy_file(path: Path, made: Path) -> None:
    """Copy a file with its timestamps and its safe permissions."""
    with open_unchanged(path) as file, made.open("xb") as copy:
        shutil.copyfileobj(file, copy)
    copy_status(path, made)


def copy_status(path: Path, made: Path) -> None:
    """Copy the timestamps and the safe permissions of a file or folder to another."""
    shutil.copystat(path, made)
    made.chmod(safe_mode(path.stat().st_mode))


logger = logging.getLogger(__name__)


class EditableCode(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a file's device code that determine the action for the file."""

    targets: tuple[TargetId, ...] = ()
    is_code_alone: bool = False
    """Whether the file contains only a code object or bundles."""
    has_bundles: bool = False
    """Whether there are editable bundles."""
    is_archive: bool = False
    """Whether the file is a kpack archive, which can be compressed and pruned."""


class PruneAction(enum.Enum):
    """The action for a file or symlink in the tree."""

    DROPPED = "dropped"
    EDITED = "edited"
    COPIED = "copied"


def read_file_code(data: Data, name: str) -> EditableCode:
    """Read the device code of the file ``name``, and log a warning for unlinked code, which can't be edited.

    Raises `InputError` for damaged files, including DLLs and programs without device code.
    """
    require_sound_image(data, name=name)
    return EditableCode(
        targets=file_targets(data, name),
        is_code_alone=is_code_object(data) or is_bundle(data),
        has_bundles=_has_bundles(data, name),
        is_archive=is_kpack(data),
    )


def file_targets(data: Data, name: str) -> tuple[TargetId, ...]:
    """Return every target that the file ``name`` has code for, or every target that a kpack archive lists.

    Raises `InputError` for damaged files.
    """
    if is_kpack(data):
        return tuple(parse_target_id(target, source=name) for target in read_archive(data, name=name).targets)
    return device_targets(data, name=name)


def _has_bundles(data: Data, name: str) -> bool:
    try:
        return bool(list_places(data, name=name))
    except UnlinkedCodeError as e:
        logger.warning("%s: %s, which is left unchanged", e.source, e.found)
        return False


def link_action(place: PurePath, keep: Sequence[TargetId]) -> PruneAction:
    """Return the action for a symlink at ``place`` in the tree, based on its name."""
    return (
        PruneAction.DROPPED if is_kernel_file(place.name) and _is_named_for_others(place, keep) else PruneAction.COPIED
    )


def file_action(place: PurePath, code: EditableCode, keep: Sequence[TargetId]) -> PruneAction:
    """Return the action for a file at ``place`` in the tree, based on its device code, or on a more specific name."""
    if code.targets:
        is_device_code = code.is_code_alone or code.is_archive
        is_for_others = (is_device_code or _is_named_for_others(place, keep)) and not is_any_kept(code.targets, keep)
    else:
        is_for_others = is_kernel_file(place.name) and _is_named_for_others(place, keep)
    if is_for_others:
        return PruneAction.DROPPED
    is_mixed = code.is_archive and not all(is_any_kept([target], keep) for target in code.targets)
    return PruneAction.EDITED if code.has_bundles or is_mixed else PruneAction.COPIED


def _is_named_for_others(place: PurePath, keep: Sequence[TargetId]) -> bool:
    targets = targets_in_path(str(place))
    return bool(targets) and not is_any_kept(targets, keep)


def find_emptied_libraries(path: Path, edit: Prune) -> Iterator[InputError]:
    """Yield an error for each split library in a folder or wheel in which ``edit`` would leave a unit without code.

    The error is the same as for a fat library. Code in archives elsewhere is ignored, because the edit doesn't
    change that code. Unreadable files aren't reported, because the edit itself reports them.
    """
    binaries = list(find_binaries(path))
    if edit.allow_empty or not any(isinstance(found, Binary) and is_named_archive(found) for found in binaries):
        return
    find = partial(_find_emptied, archives=GivenArchives(binaries), edit=edit)
    for _, result in read_found(binaries, find):
        if not isinstance(result, InputError):
            yield from result


def _find_emptied(data: Data, found: Binary, *, archives: GivenArchives, edit: Prune) -> tuple[InputError, ...]:
    """Return the error for a library's first unit without code, or an empty tuple if all units have code."""
    if is_named_archive(found):
        return ()
    with open_kpack_code(data, name=found.name, folder=None, beside=archives.beside(found)) as kpack:
        units = kpack.units if kpack is not None and kpack.is_library else ()
        return tuple(error for unit in units if (error := _emptied(unit, found.name, edit)))[:1]


def _emptied(unit: CodeUnit, name: str, edit: Prune) -> InputError | None:
    targets = [parse_target_id(target, source=name) for target in unit.targets]
    if not targets or edit.needed([targets]):
        return None
    return edit.nothing_left(targets, CodePlace(name, unit.wrapper.offset if unit.wrapper else 0))


def refuse_wheels(paths: Iterable[Path], keep: Sequence[TargetId]) -> Iterator[InputError]:
    """Yield an error for each wheel that has device code, or kernel files for targets that aren't in ``keep``.

    Also yields an error for each unreadable wheel. Other wheels can be copied unchanged.
    """
    for path in paths:
        if path.suffix != ".whl" or path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            begins_like_a_wheel = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
        if not begins_like_a_wheel:  # a damaged wheel may have no end
            continue
        try:
            if any(_is_pruned(member, keep) for member in read_directory(path)):
                remedy = "Prune the wheel separately: rocwheel device prune WHEEL --targets TARGETS -o FOLDER"
                yield InputError(
                    path, "is a wheel with device code, inside a folder", expected="unpacked files", remedy=remedy
                )
        except InputError as e:
            yield e


def _is_pruned(member: ZipMember, keep: Sequence[TargetId]) -> bool:
    """Return whether a member might have device code, or is named for other targets."""
    if not is_binary(member_head(member)):
        return file_action(PurePosixPath(member.name), EditableCode(), keep) is PruneAction.DROPPED
    with open_unpacked(member) as (unpacked, _), unpacked.view() as data:
        return bool(read_file_code(data, member.source).targets)


class TreeEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a tree: omitted paths, files with edited code, and the number of other files."""

    dropped: tuple[str, ...]
    edited: tuple[RewriteReport, ...]
    copied: int
    warnings: tuple[str, ...] = ()
    """Warnings about files whose code wasn't edited."""


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for all files in a tree: folders, edit, and options."""

    source: Path
    made: Path
    edit: Prune | None
    storage: Storage
    trim: bool
    jobs: int
    progress: Progress

    def rewrite(self, path: Path, made: Path) -> RewriteReport:
        """Rewrite a file. If the file can't be trimmed, edit it in place and add a warning."""
        rewrite = partial(
            rewrite_device_code, path, made, self.edit, self.storage, jobs=self.jobs, progress=self.progress
        )
        with FileRange.whole(path).view() as data:
            is_trimmed = self.trim and holds_places(data)
        if not is_trimmed:
            return rewrite()
        try:
            return rewrite(trim=True)
        except NotTrimmableError as e:
            report = rewrite()
            return msgspec.structs.replace(report, warnings=(*report.warnings, f"not trimmed: {e}"))


def edit_tree(
    source: Path,
    output: Path,
    edit: Prune | None,
    storage: Storage,
    *,
    trim: bool = False,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> TreeEdit:
    """Copy the folder ``source`` to ``output``, without code for targets that ``edit`` doesn't keep.

    The copy omits three kinds of paths:

    * code objects and bundle files that are only for other targets
    * files of kernel libraries (`is_kernel_file`) and of device code whose names are only for other targets
    * links whose target is omitted

    Unlinked code isn't edited, and a warning is logged. Signed DLLs and programs aren't edited, and the result has a
    warning.

    Without an edit, nothing is omitted, bundles and kpack archives are compressed, and wheels don't change. With
    ``trim``, freed space is removed from binaries; binaries that can't be trimmed are edited in place, with a warning.
    ``output`` must be new or empty, and not in ``source``. The output appears only when it is complete.

    Raises the same errors as `rewrite_device_code`. Also raises `InputError` for unreadable paths, and for split
    libraries that would have no code left, unless the edit allows this. Raises `ProblemsError` for several damaged
    files, for wheels with device code to remove (`refuse_wheels`), and for folders that can't be listed. Raises
    `WorkError` if writing fails.
    """
    with new_folder(output, source) as made:
        job = _Job(source=source, made=made, edit=edit, storage=storage, trim=trim, jobs=jobs, progress=progress)
        return _edit(job)


def _edit(job: _Job) -> TreeEdit:
    paths = list_tree(job.source)
    if job.edit is not None:
        problems = [*refuse_wheels(paths, job.edit.keep), *find_emptied_libraries(job.source, job.edit)]
        raise_all(str(job.source), problems)
    places = [path.relative_to(job.source) for path in paths]
    made = map_collecting(str(job.source), lambda place: (place, _edit_path(job, place)), places)
    actions = dict(made)
    signed = [action for action in actions.values() if isinstance(action, SignedFileError)]
    dropped = [str(place) for place, action in actions.items() if action is PruneAction.DROPPED]
    dangling = list(_drop_dangling_links(job))
    rewritten = [action for action in actions.values() if isinstance(action, RewriteReport)]
    same = [report for report in rewritten if not report.changed]
    return TreeEdit(
        dropped=(*dropped, *dangling),
        edited=tuple(report for report in rewritten if report.changed),
        copied=sum(action is PruneAction.COPIED for action in actions.values())
        - len(dangling)
        + len(same)
        + len(signed),
        warnings=(
            *(warning for report in same for warning in report.warnings),
            *map(signed_warning, signed),
            *inner_wheel_warnings(job.source / place for place in (places if job.edit is None else ())),
        ),
    )


def _edit_path(job: _Job, place: Path) -> PruneAction | RewriteReport | SignedFileError | None:
    """Copy or edit one path.

    Return the action, `None` for a folder, or the reason why a signed file was copied unchanged.
    """
    path, made = job.source / place, job.made / place
    if path.is_symlink():
        action = link_action(place, job.edit.keep) if job.edit else PruneAction.COPIED
        if action is PruneAction.COPIED:
            made.symlink_to(path.readlink())
        return action
    if path.is_dir():
        made.mkdir(parents=True, exist_ok=True)
        return None
    require_regular(path)
    with FileRange.whole(path).view() as data:
        code = read_file_code(data, str(path))
    action = PruneAction.EDITED if code.has_bundles or code.is_archive else PruneAction.COPIED
    if job.edit is not None:
        action = file_action(place, code, job.edit.keep)
    if action is PruneAction.EDITED:
        try:
            return job.rewrite(path, made)
        except SignedFileError as e:
            copy_file(path, made)
            return e
    if action is PruneAction.COPIED:
        copy_file(path, made)
    return action


def _drop_dangling_links(job: _Job) -> Iterator[str]:
    """Remove the links whose targets are omitted; yield the links' paths in the tree."""
    for path in sorted(job.made.rglob("*")):
        place = path.relative_to(job.made)
        if path.is_symlink() and not path.exists() and (job.source / place).exists():
            path.unlink()
            yield str(place)
