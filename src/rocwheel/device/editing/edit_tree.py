"""Editing the device code in a tree of files: without that for some targets, or compressed."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import NotTrimmableError
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.core.writing import new_folder
from rocwheel.device.editing.emptied_libraries import find_emptied_libraries
from rocwheel.device.editing.fates import Fate, FileCode, file_fate, link_fate, read_file_code
from rocwheel.device.editing.file_rewrite import is_binary
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.rewrite import rewrite_device_code
from rocwheel.device.editing.rewrite_order import RewriteReport
from rocwheel.device.editing.tree_copy import copy_file, list_tree, require_regular
from rocwheel.device.editing.wheels.refuse_wheels import refuse_wheels
from rocwheel.device.reading.images import signed_warning
from rocwheel.wheels.binaries import inner_wheel_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["TreeEdit", "edit_tree"]

logger = logging.getLogger(__name__)


class TreeEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree: paths that were left out, files whose code was edited, the number of other files."""

    dropped: tuple[str, ...]
    edited: tuple[RewriteReport, ...]
    copied: int
    warnings: tuple[str, ...] = ()
    """Which files have code that stays as it is."""


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all files of a tree: where they are, where they go, and what becomes of their code."""

    source: Path
    made: Path
    edit: Prune | None
    storage: Storage
    trim: bool
    jobs: int
    progress: Progress

    def rewrite(self, path: Path, made: Path) -> RewriteReport:
        """Rewrite a file; what can't be trimmed is edited in place, with a warning."""
        rewrite = partial(
            rewrite_device_code, path, made, self.edit, self.storage, jobs=self.jobs, progress=self.progress
        )
        if not self.trim or not _is_binary(path):
            return rewrite()
        try:
            return rewrite(trim=True)
        except NotTrimmableError as e:
            report = rewrite()
            return msgspec.structs.replace(report, warnings=(*report.warnings, f"not trimmed: {e}"))


def _is_binary(path: Path) -> bool:
    with FileRange.whole(path).view() as data:
        return is_binary(data)


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
    """Copy the folder ``source`` to ``output``, without code for targets other than those that ``edit`` keeps.

    Left out are code objects, and files of bundles and nothing else, that are all for other targets; files of kernel
    libraries (`is_kernel_file`) and of device code whose names are for other targets alone; and links whose target was
    left out. Code that isn't linked yet stays, with a warning in the log, and
    so do signed DLLs and programs, with a warning in the result. Without an edit, nothing is left out, and
    bundles and kpack archives are compressed; wheels stay as they are. With ``trim``, freed space is taken out of
    binaries; those that can't be trimmed are edited in place, with a warning. ``output`` must be new or empty, and not
    in ``source``; it appears when it is whole.
    Raises `InputError` as `rewrite_device_code` does, for split libraries that would have no code left unless the edit
    allows it, and for what can't be read; `ProblemsError` for several damaged files, for wheels with device code to
    leave out (`refuse_wheels`), and for folders that can't be listed; and `WorkError` when writing fails.
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
    made = convert_all(str(job.source), lambda place: (place, _edit_path(job, place)), places)
    fates = dict(made)
    signed = [fate for fate in fates.values() if isinstance(fate, SignedFileError)]
    dropped = [str(place) for place, fate in fates.items() if fate is Fate.DROPPED]
    dangling = list(_drop_dangling_links(job))
    rewritten = [fate for fate in fates.values() if isinstance(fate, RewriteReport)]
    same = [report for report in rewritten if not report.changed]
    return TreeEdit(
        dropped=(*dropped, *dangling),
        edited=tuple(report for report in rewritten if report.changed),
        copied=sum(fate is Fate.COPIED for fate in fates.values()) - len(dangling) + len(same) + len(signed),
        warnings=(
            *(warning for report in same for warning in report.warnings),
            *map(signed_warning, signed),
            *inner_wheel_warnings(job.source / place for place in (places if job.edit is None else ())),
        ),
    )


def _edit_path(job: _Job, place: Path) -> Fate | RewriteReport | SignedFileError | None:
    """Bring one path over; return what became of it, none for a folder, and for a signed file why it is copied."""
    path, made = job.source / place, job.made / place
    if path.is_symlink():
        fate = link_fate(place, job.edit.keep) if job.edit else Fate.COPIED
        if fate is Fate.COPIED:
            made.symlink_to(path.readlink())
        return fate
    if path.is_dir():
        made.mkdir(parents=True, exist_ok=True)
        return None
    fate = _fate(job, place, _read_code(path))
    if fate is Fate.EDITED:
        try:
            return job.rewrite(path, made)
        except SignedFileError as e:
            copy_file(path, made)
            return e
    if fate is Fate.COPIED:
        copy_file(path, made)
    return fate


def _fate(job: _Job, place: Path, code: FileCode) -> Fate:
    if job.edit is not None:
        return file_fate(place, code, job.edit.keep)
    return Fate.EDITED if code.has_bundles or code.is_archive else Fate.COPIED


def _read_code(path: Path) -> FileCode:
    require_regular(path)
    with FileRange.whole(path).view() as data:
        return read_file_code(data, str(path))


def _drop_dangling_links(job: _Job) -> Iterator[str]:
    """Remove the links whose target was left out; yield their paths in the tree."""
    for path in sorted(job.made.rglob("*")):
        place = path.relative_to(job.made)
        if path.is_symlink() and not path.exists() and (job.source / place).exists():
            path.unlink()
            yield str(place)
