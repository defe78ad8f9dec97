"""Taking code for some targets out of a tree of files: out of bundles, and files that are for such targets alone."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects.code_object import is_code_object
from rocwheel.binary.kind import is_bundle
from rocwheel.device.editing.places import UnlinkedCodeError, list_places
from rocwheel.device.editing.prune import Prune, serves
from rocwheel.device.editing.rewrite import RewriteReport, rewrite_device_code
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, read_error, write_error
from rocwheel.foundation.files import FileRange
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.targets.named_files import is_kernel_file, targets_in_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.bundles.storage import Storage
    from rocwheel.binary.code_objects.target_id import TargetId

__all__ = ["TreePruning", "prune_tree"]

logger = logging.getLogger(__name__)

_PERMISSIONS = "Check its permissions."


class TreePruning(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree: paths that were left out, files whose bundles were edited, the number of other files."""

    dropped: tuple[str, ...]
    edited: tuple[RewriteReport, ...]
    copied: int


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
    Raises `InputError` as `rewrite_device_code` does and for what can't be read, `ProblemsError` for folders that can't
    be listed, and `WorkError` when writing fails.
    """
    if output.resolve().is_relative_to(source.resolve()):
        raise InputError(output, f"a folder in {source}, which is copied", expected="one outside of it")
    if output.exists():
        raise InputError(output, "exists already", expected="a folder to make", remedy="Remove it or name another.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
            made = Path(folder) / output.name
            report = _Pruner(source, made, edit, storage, jobs, progress).run()
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
    problems = [InputError(e.filename, f"cannot be listed ({e.strerror})", remedy=_PERMISSIONS) for e in errors]
    raise_all(str(folder), problems)
    return paths


class _Pruner:
    def __init__(self, source: Path, made: Path, edit: Prune, storage: Storage, jobs: int, progress: Progress) -> None:
        self.source, self.made, self.edit, self.storage = source, made, edit, storage
        self.jobs, self.progress = jobs, progress
        self.dropped: list[str] = []
        self.edited: list[RewriteReport] = []
        self.copied = 0

    def run(self) -> TreePruning:
        self.made.mkdir()
        for path in _list_tree(self.source):
            place = path.relative_to(self.source)
            if path.is_symlink():
                self._link(path, place)
            elif path.is_dir():
                (self.made / place).mkdir(parents=True, exist_ok=True)
            else:
                self._file(path, place)
        self.dropped += self._drop_dangling_links()
        return TreePruning(dropped=tuple(self.dropped), edited=tuple(self.edited), copied=self.copied)

    def _is_kept(self, target: TargetId) -> bool:
        return any(serves(target, wanted) for wanted in self.edit.keep)

    def _is_named_for_others(self, place: Path) -> bool:
        targets = targets_in_path(str(place))
        return bool(targets) and not any(map(self._is_kept, targets))

    def _link(self, path: Path, place: Path) -> None:
        if is_kernel_file(place.name) and self._is_named_for_others(place):
            self.dropped.append(str(place))
        else:
            (self.made / place).symlink_to(path.readlink())
            self.copied += 1

    def _file(self, path: Path, place: Path) -> None:
        if not path.is_file():
            # A pipe would be waited for, a device read without end.
            raise InputError(
                path, "is not a regular file", expected="only files, folders and links", remedy="Remove it."
            )
        with FileRange.whole(path).map() as data:
            targets = device_targets(data, name=str(path))
            is_code_alone = is_code_object(data) or is_bundle(data)
            has_bundles = _has_bundles(data, str(path))
        if self._is_for_others(place, targets, is_code_alone=is_code_alone):
            self.dropped.append(str(place))
        elif has_bundles:
            report = rewrite_device_code(
                path, self.made / place, self.edit, self.storage, jobs=self.jobs, progress=self.progress
            )
            self.edited.append(report)
        else:
            shutil.copy2(path, self.made / place)
            self.copied += 1

    def _is_for_others(self, place: Path, targets: tuple[TargetId, ...], *, is_code_alone: bool) -> bool:
        """Return whether the code in a file, or its name if that says more, is only for other targets."""
        if targets:
            return (is_code_alone or self._is_named_for_others(place)) and not any(map(self._is_kept, targets))
        return is_kernel_file(place.name) and self._is_named_for_others(place)

    def _drop_dangling_links(self) -> Iterator[str]:
        for path in sorted(self.made.rglob("*")):
            place = path.relative_to(self.made)
            if path.is_symlink() and not path.exists() and (self.source / place).exists():
                path.unlink()
                self.copied -= 1
                yield str(place)


def _has_bundles(data: memoryview, name: str) -> bool:
    try:
        return bool(list_places(data, name=name))
    except UnlinkedCodeError as e:
        logger.warning("%s: %s, which stays as it is", e.source, e.found)
        return False
