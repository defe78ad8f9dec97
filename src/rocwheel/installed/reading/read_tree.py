"""Read what a user names: wheels, folders of wheels, environments, artifacts, or any folder of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.artifacts.fetching import CHECKSUM_FILES
from rocwheel.core.errors import InputError, RocwheelError, WorkError, each_problem, read_error
from rocwheel.core.messages import absent_remedy, find_below, quoted
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.installed.environments import Environments, split_environments
from rocwheel.installed.reading.read_folders import (
    find_site_packages,
    is_artifact_folder,
    read_artifact_folder,
    read_folder,
)
from rocwheel.installed.reading.read_wheels import read_wheels
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.installed.tree import Distribution, InstalledFile, Tree
from rocwheel.wheels.build_manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


__all__ = ["UNREADABLE", "read_environments", "read_tree", "real_paths"]

UNREADABLE = "paths that can't be read"
_ARCHIVES = (".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz", ".zip", ".deb")
_BESIDE = (*CHECKSUM_FILES, MANIFEST_NAME)
"""Files of a build that lie beside such archives."""
_NOTHING, _SUBJECTS = "contains neither a package nor a library", "wheels, an environment or artifacts"
_BY_DEFAULT = WheelReading()

_Part = tuple[list[Distribution], list[InstalledFile]]


def read_environments(
    paths: Sequence[Path],
    with_packages: Sequence[Path] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    how: WheelReading = _BY_DEFAULT,
) -> Environments:
    """Read everything at ``paths`` and ``with_packages`` as `read_tree` does, split into environments."""
    return split_environments(read_tree(paths, with_packages, progress=progress, unread=unread, how=how))


def read_tree(
    paths: Sequence[Path],
    with_packages: Sequence[Path] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    how: WheelReading = _BY_DEFAULT,
) -> Tree:
    """Read everything at ``paths`` into one tree, and ``with_packages`` as its context.

    A path is a wheel, a folder of wheels, an installed environment, a folder of artifacts, or any folder of files.
    What several paths lead to is read once, and audited if any of ``paths`` leads there.
    Raises `InputError` for a path that is none of these, and for a folder of context without a package or library;
    `ProblemsError` for several such paths. With a list ``unread``, the errors about ``paths`` are appended to it, and
    the tree is that of all others, if there are any. ``how`` tells how the members of wheels are read.
    """
    audited = real_paths(paths)
    context = {real: path for real, path in real_paths(with_packages).items() if real not in audited}
    problems: list[RocwheelError] = []
    refused: list[RocwheelError] = []
    parts = attempt_all(lambda path: _read(path, progress, how, context=False), audited.values(), problems)
    beside = attempt_all(lambda path: _read(path, progress, how, context=True), context.values(), refused)
    progress.end()
    has_failed = any(isinstance(problem, WorkError) for problem in each_problem(problems))
    if unread is None or refused or not parts or has_failed:
        raise_all(UNREADABLE, [*problems, *refused])
    if unread is not None:
        unread += problems
    parts += beside
    distributions = tuple(distribution for found, _ in parts for distribution in found)
    files = tuple(file for _, found in parts for file in found)
    is_prefix = bool(distributions) and not any(distribution.dist_info for distribution in distributions)
    return Tree(distributions, files, is_prefix)


def real_paths(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the real path of each wheel, and of each other folder, to the path by which it was named first.

    A folder of wheels stands for its wheels. Raises `InputError` for a path that the system refuses.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for place in _wheels(path) or [path]:
            found.setdefault(os.path.realpath(place), place)
    return found


def _wheels(path: Path) -> list[Path]:
    try:
        return sorted(path.glob("*.whl")) if path.is_dir() else []
    except OSError as e:
        raise read_error(path, e) from e


def _read(path: Path, progress: Progress, how: WheelReading, *, context: bool) -> _Part:
    if path.is_file():
        if path.suffix != ".whl":
            raise InputError(
                path, "is not a wheel", expected="a wheel or a folder", remedy="Use rocwheel inspect for other files."
            )
        return read_wheels([path], context=context, progress=progress, how=how)
    if not path.is_dir():
        found = "is neither a file nor a folder" if path.exists() else "does not exist"
        raise InputError(path, found, expected="a wheel or a folder", remedy=absent_remedy(path))
    if find_site_packages(path) is None and is_artifact_folder(path):
        return read_artifact_folder(path, context=context, progress=progress)
    distributions, files = read_folder(path, context=context, progress=progress)
    if not files:
        raise InputError(path, "is an empty folder", expected="wheels, an environment, artifacts or files")
    if not any(owner.dist_info for owner in distributions) and not any(file.elf for file in files):
        _require_no_archives(path, files)
        _require_no_wheels_below(path)
        if context:
            raise InputError(path, _NOTHING, expected=_SUBJECTS)
    return distributions, files


def _require_no_archives(path: Path, files: Iterable[InstalledFile]) -> None:
    """Raise `InputError` for a folder of sdists or other archives alone: what they hold is not read."""
    names = sorted(file.path for file in files if file.path not in _BESIDE)
    if names and all(name.endswith(_ARCHIVES) for name in names):
        remedy = "Name the folder of the wheels, or unpack the archives."
        raise InputError(path, f"holds only archives, such as {quoted(names[0])}", expected=_SUBJECTS, remedy=remedy)


def _require_no_wheels_below(path: Path) -> None:
    """Raise `InputError` for the parent of a folder of wheels: reading its files says nothing of them."""
    if below := find_below(path, lambda found: found.suffix == ".whl"):
        raise InputError(path, _NOTHING, expected=_SUBJECTS, remedy=f"There are wheels in {below}.")
