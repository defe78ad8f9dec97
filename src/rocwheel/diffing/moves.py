"""Files that moved from one package of a build to another."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.diffing.archived_code import ArchivedCode
from rocwheel.diffing.changes import FileChange, PackageChange, Status
from rocwheel.targets.kernel_files.names import kernel_targets, library_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    Carriers: TypeAlias = dict[tuple[str, str], set[str]]

__all__ = ["with_moves"]

_VERSION = re.compile(r"\.so(\.\d+)+$")


def with_moves(packages: Sequence[PackageChange], code: ArchivedCode = ArchivedCode()) -> list[PackageChange]:  # noqa: B008 (a frozen value)
    """Return the changes with what moved: files by their paths or SONAMEs, and GPU targets.

    Code that is in a kpack archive now has moved whatever the archive is called.
    """
    places = _places(packages)
    carriers = _carriers(packages)
    return [_with_moved_targets(_with_moved_files(package, places), carriers, code) for package in packages]


def _places(packages: Iterable[PackageChange]) -> dict[str, str]:
    """Return the path and the SONAME of each file that came to the name of its package."""
    places: dict[str, str] = {}
    for package in packages:
        for file in package.files:
            if file.status is Status.CAME:
                places.setdefault(file.new_path, package.name)
                if file.library and file.library.new_soname:
                    places.setdefault(file.library.new_soname, package.name)
    return places


def _with_moved_files(package: PackageChange, places: Mapping[str, str]) -> PackageChange:
    files = tuple(_with_place(file, package.name, places) for file in package.files)
    return msgspec.structs.replace(package, files=files)


def _with_place(file: FileChange, package: str, places: Mapping[str, str]) -> FileChange:
    if file.status is not Status.WENT:
        return file
    soname = file.library.old_soname if file.library else ""
    place = places.get(file.old_path) or places.get(soname, "")
    return msgspec.structs.replace(file, moved_to=place) if place and place != package else file


def _with_moved_targets(package: PackageChange, carriers: Carriers, code: ArchivedCode) -> PackageChange:
    """Return the change with the targets apart whose code other packages have now, for each file that lost it."""
    carried = [_carried(file, package.name, carriers) | _archived(file, package.name, code) for file in package.files]
    lost = {
        target for file, moved in zip(package.files, carried, strict=True) for target in _targets_went(file) - moved
    }
    moved = frozenset().union(*carried) - lost
    return msgspec.structs.replace(
        package,
        targets_went=tuple(target for target in package.targets_went if target not in moved),
        targets_moved=tuple(target for target in package.targets_went if target in moved),
        files=tuple(_without_targets(file, own) for file, own in zip(package.files, carried, strict=True)),
    )


def _without_targets(file: FileChange, moved: frozenset[str]) -> FileChange:
    if file.library is None or moved.isdisjoint(file.library.targets_went):
        return file
    kept = tuple(target for target in file.library.targets_went if target not in moved)
    return msgspec.structs.replace(file, library=msgspec.structs.replace(file.library, targets_went=kept))


def _carriers(packages: Iterable[PackageChange]) -> Carriers:
    """Return the packages in which a file has come to have code for a target, by what names the file."""
    carriers: Carriers = defaultdict(set)
    for package in packages:
        for file in package.files:
            soname = file.library.new_soname if file.library else ""
            for target in _targets_came(file):
                for name in _names(file.new_path, soname):
                    carriers[name, target].add(package.name)
    return carriers


def _carried(file: FileChange, package: str, carriers: Carriers) -> frozenset[str]:
    """Return the targets that a file lost, and that a file of the same name or library in another package got."""
    names = _names(file.old_path, file.library.old_soname if file.library else "")
    return frozenset(
        target
        for target in _targets_went(file)
        if any(carriers.get((name, target), set()) - {package} for name in names)
    )


def _archived(file: FileChange, package: str, code: ArchivedCode) -> frozenset[str]:
    """Return the targets that a file lost, and whose code archives of any package have."""
    return frozenset(target for target in _targets_went(file) if code.packages_with(package, file, target))


def _names(path: str, soname: str) -> set[str]:
    """Return what code keeps when it moves: path, file name without a version, SONAME, or the library of kernels."""
    return {path, _VERSION.sub(".so", posixpath.basename(path)), library_of(path), soname} - {"", "/"}


def _targets_went(file: FileChange) -> frozenset[str]:
    of_path = kernel_targets(file.old_path) if file.status is Status.WENT else frozenset()
    return of_path.union(file.library.targets_went if file.library else ())


def _targets_came(file: FileChange) -> frozenset[str]:
    of_path = kernel_targets(file.new_path) if file.status is Status.CAME else frozenset()
    return of_path.union(file.library.targets_came if file.library else ())
