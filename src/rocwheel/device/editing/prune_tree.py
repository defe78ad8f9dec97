"""Taking code for some targets out of a tree of files: out of bundles, and files that are for such targets alone."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.editing.fates import Fate, FileCode, file_fate, link_fate, read_file_code
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.rewrite import RewriteReport, rewrite_device_code
from rocwheel.device.editing.wheels.refuse_wheels import refuse_wheels
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, read_error, write_error
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.modes import safe_mode
from rocwheel.foundation.files.regular_files import open_unchanged
from rocwheel.foundation.files.scratch import scratch_folder
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["PruneJob", "TreePruning", "prune_tree"]

logger = logging.getLogger(__name__)

_PERMISSIONS = "Check its permissions."


class TreePruning(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree: paths that were left out, files whose bundles were edited, the number of other files."""

    dropped: tuple[str, ...]
    edited: tuple[RewriteReport, ...]
    copied: int


class PruneJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all files of a tree: where they are, where they go, and what becomes of their bundles."""

    source: Path
    made: Path
    edit: Prune
    storage: Storage
    jobs: int
    progress: Progress


def prune_tree(
    source: Path,
    output: Path,
    edit: Prune,
    storage: Storage,
    *,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> TreePruning:
    """Copy the folder ``source`` to ``output``, without code for targets other than those that ``edit`` keeps.

    Left out are code objects, and files of bundles and nothing else, that are all for other targets; files of kernel
    libraries (`is_kernel_file`) and of device code whose names are for other targets alone; and links whose target was
    left out. Code that isn't linked yet stays, with a warning in the log. ``output`` must neither exist nor be in
    ``source``; it appears when it is whole.
    Raises `InputError` as `rewrite_device_code` does and for what can't be read, `ProblemsError` for wheels with device
    code (`refuse_wheels`) and folders that can't be listed, and `WorkError` when writing fails.
    """
    if output.resolve().is_relative_to(source.resolve()):
        raise InputError(output, f"a folder in {source}, which is copied", expected="one outside of it")
    if output.exists():
        raise InputError(output, "exists already", expected="a folder to make", remedy="Remove it or name another.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(output) as folder:
            made = folder / output.name
            job = PruneJob(source=source, made=made, edit=edit, storage=storage, jobs=jobs, progress=progress)
            report = _prune(job)
            made.rename(output)
    except OSError as e:
        raise _copy_error(e, source, output) from e
    return report


def _copy_error(error: OSError, source: Path, output: Path) -> InputError:
    if error.filename and Path(error.filename).is_relative_to(source):
        return read_error(error.filename, error, remedy=_PERMISSIONS)
    return write_error(output, error, remedy="Check the free space.")


def _list_tree(folder: Path) -> list[Path]:
    """List all that is below ``folder``; raise `InputError`, or `ProblemsError`, for folders that can't be listed."""
    errors: list[OSError] = []
    walk = os.walk(folder, onerror=errors.append)
    paths = sorted(Path(root, name) for root, folders, files in walk for name in (*folders, *files))
    problems = [InputError(e.filename, f"can't be listed ({e.strerror})", remedy=_PERMISSIONS) for e in errors]
    raise_all(str(folder), problems)
    return paths


def _prune(job: PruneJob) -> TreePruning:
    job.made.mkdir()
    paths = _list_tree(job.source)
    raise_all(str(job.source), list(refuse_wheels(paths, job.edit.keep)))
    places = [path.relative_to(job.source) for path in paths]
    fates = {place: _prune_path(job, place) for place in places}
    dropped = [str(place) for place, fate in fates.items() if fate is Fate.DROPPED]
    dangling = list(_drop_dangling_links(job))
    return TreePruning(
        dropped=(*dropped, *dangling),
        edited=tuple(fate for fate in fates.values() if isinstance(fate, RewriteReport)),
        copied=sum(fate is Fate.COPIED for fate in fates.values()) - len(dangling),
    )


def _prune_path(job: PruneJob, place: Path) -> Fate | RewriteReport | None:
    """Bring one path over; return what became of it, none for a folder."""
    path, made = job.source / place, job.made / place
    if path.is_symlink():
        fate = link_fate(place, job.edit.keep)
        if fate is Fate.COPIED:
            made.symlink_to(path.readlink())
        return fate
    if path.is_dir():
        made.mkdir(parents=True, exist_ok=True)
        return None
    fate = file_fate(place, _read_code(path), job.edit.keep)
    if fate is Fate.EDITED:
        return rewrite_device_code(path, made, job.edit, job.storage, jobs=job.jobs, progress=job.progress)
    if fate is Fate.COPIED:
        _copy(path, made)
    return fate


def _copy(path: Path, made: Path) -> None:
    with open_unchanged(path) as file, made.open("xb") as copy:
        shutil.copyfileobj(file, copy)
    shutil.copystat(path, made)
    made.chmod(safe_mode(path.stat().st_mode))


def _read_code(path: Path) -> FileCode:
    if not path.is_file():
        # A pipe would be waited for, a device read without end.
        raise InputError(path, "is not a regular file", expected="only files, folders and links", remedy="Remove it.")
    with FileRange.whole(path).view() as data:
        return read_file_code(data, str(path))


def _drop_dangling_links(job: PruneJob) -> Iterator[str]:
    """Remove the links whose target was left out; yield their paths in the tree."""
    for path in sorted(job.made.rglob("*")):
        place = path.relative_to(job.made)
        if path.is_symlink() and not path.exists() and (job.source / place).exists():
            path.unlink()
            yield str(place)
