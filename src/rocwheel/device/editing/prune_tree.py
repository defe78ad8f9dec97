"""Taking code for some targets out of a tree of files: out of bundles, and files that are for such targets alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.editing.fates import Fate, FileCode, file_fate, link_fate, read_file_code
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.rewrite import rewrite_device_code
from rocwheel.device.editing.rewrite_order import RewriteReport
from rocwheel.device.editing.tree_copy import copy_file, list_tree, new_folder, require_regular
from rocwheel.device.editing.wheels.refuse_wheels import refuse_wheels
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["PruneJob", "TreePruning", "prune_tree"]

logger = logging.getLogger(__name__)


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
    with new_folder(output, source) as made:
        job = PruneJob(source=source, made=made, edit=edit, storage=storage, jobs=jobs, progress=progress)
        return _prune(job)


def _prune(job: PruneJob) -> TreePruning:
    job.made.mkdir()
    paths = list_tree(job.source)
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
        copy_file(path, made)
    return fate


def _read_code(path: Path) -> FileCode:
    require_regular(path)
    with FileRange.whole(path).view() as data:
        return read_file_code(data, str(path))


def _drop_dangling_links(job: PruneJob) -> Iterator[str]:
    """Remove the links whose target was left out; yield their paths in the tree."""
    for path in sorted(job.made.rglob("*")):
        place = path.relative_to(job.made)
        if path.is_symlink() and not path.exists() and (job.source / place).exists():
            path.unlink()
            yield str(place)
