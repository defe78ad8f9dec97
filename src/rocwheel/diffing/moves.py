"""What went from one package of a build and is in another one now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.diffing.changes import FileChange, PackageChange, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["with_moves"]


def with_moves(packages: Sequence[PackageChange]) -> list[PackageChange]:
    """Return the changes with what moved: files by their paths or SONAMEs, and GPU targets."""
    places = _places(packages)
    return [_with_moved_targets(_with_moved_files(package, places), packages) for package in packages]


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


def _with_moved_targets(package: PackageChange, packages: Iterable[PackageChange]) -> PackageChange:
    """Return the change with the targets apart that another package has come to have code for."""
    offered = {target for other in packages if other.name != package.name for target in other.targets_came}
    return msgspec.structs.replace(
        package,
        targets_went=tuple(target for target in package.targets_went if target not in offered),
        targets_moved=tuple(target for target in package.targets_went if target in offered),
        files=tuple(_without_targets(file, offered) for file in package.files),
    )


def _without_targets(file: FileChange, moved: set[str]) -> FileChange:
    if file.library is None or moved.isdisjoint(file.library.targets_went):
        return file
    kept = tuple(target for target in file.library.targets_went if target not in moved)
    return msgspec.structs.replace(file, library=msgspec.structs.replace(file.library, targets_went=kept))
