"""Pairs corresponding packages and files on two sides, including moved files."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, each_problem
from rocwheel.core.workers import raise_all
from rocwheel.diff.changes import FileChange, PackageChange, Status
from rocwheel.diff.facts import ArchivedCode
from rocwheel.diff.sides import Item
from rocwheel.targets.kernel_files import kernel_targets, library_of
from rocwheel.wheels.file_names import SDIST_SUFFIX, split_wheel_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from rocwheel.core.errors import RocwheelError
    from rocwheel.diff.sides import Package, Side

Thing = TypeVar("Thing")
_LIBRARY_VERSION = re.compile(r"(\.so)(\.\d+)+$")
_INFO, _DATA = "*.dist-info", "*.data"


class Pairs(msgspec.Struct, frozen=True):
    """The files of two packages: files on both sides, removed files, and added files."""

    both: tuple[tuple[Item, Item], ...]
    went: tuple[Item, ...]
    came: tuple[Item, ...]


def pair_items(old: Package, new: Package, soname_of: Callable[[Item], str]) -> Pairs:
    """Pair the files in two states of a package.

    Files are paired by path, ignoring the version in ``.dist-info``. Remaining files are paired by path without the
    packages' versions. Then libraries are paired by SONAME, which ``soname_of`` reads, and finally by file name without
    the library's version.
    """
    if len(old.items) == len(new.items) == 1 and not old.name and not new.name:
        return Pairs(((old.items[0], new.items[0]),), (), ())
    both: list[tuple[Item, Item]] = []
    # If several members have the same path, installers keep the last one.
    went, came = (list({item.path: item for item in package.items}.values()) for package in (old, new))
    ways: list[tuple[Callable[[Item], str], Callable[[Item], str]]] = [
        (lambda item: plain_path(item.path, old), lambda item: plain_path(item.path, new)),
        (lambda item: _unversioned(item.path, old), lambda item: _unversioned(item.path, new)),
        (soname_of, soname_of),
        (_numbered_stem, _numbered_stem),
        (_stem, _stem),
    ]
    for old_key, new_key in ways:
        found = _unique(went, old_key), _unique(came, new_key)
        both += [(item, found[1][key]) for key, item in found[0].items() if key in found[1]]
        paired = {id(item) for pair in both for item in pair}
        went, came = ([item for item in items if id(item) not in paired] for items in (went, came))
        if not went or not came:
            break
    return Pairs(tuple(both), tuple(went), tuple(came))


def pair_packages(old: Iterable[Package], new: Iterable[Package]) -> list[tuple[Package | None, Package | None]]:
    """Pair packages by name. Several wheels with the same name are paired by all tags, then by Python and machine.

    If each side has one package, they form a pair, regardless of their names.
    """
    olds, news = list(old), list(new)
    if len(olds) == len(news) == 1:
        return [(olds[0], news[0])]
    groups: dict[str, tuple[list[Package], list[Package]]] = {}
    for place, packages in enumerate((olds, news)):
        for package in packages:
            groups.setdefault(package.name, ([], []))[place].append(package)
    return [pair for group in groups.values() for pair in _pair_group(*group)]


def plain_path(path: str, package: Package) -> str:
    """Return a path without the name and version in a package's own ``.dist-info`` and ``.data``."""
    top, slash, rest = path.partition("/")
    if package.dist_info and top == package.dist_info:
        return f"{_INFO}{slash}{rest}"
    if package.dist_info and top == f"{package.dist_info.removesuffix('.dist-info')}.data":
        return f"{_DATA}{slash}{rest}"
    return path


def _pair_group(olds: list[Package], news: list[Package]) -> list[tuple[Package | None, Package | None]]:
    pairs: list[tuple[Package | None, Package | None]] = []
    ways: tuple[Callable[[Package], str], ...] = (_tags, _python_and_machine)
    for key in ways:
        found = _unique(olds, key), _unique(news, key)
        pairs += [(one, found[1][name]) for name, one in found[0].items() if name in found[1]]
        paired = {id(one) for pair in pairs for one in pair}
        olds, news = ([one for one in packages if id(one) not in paired] for packages in (olds, news))
    if len(olds) == len(news) == 1:
        return [*pairs, (olds[0], news[0])]
    return [*pairs, *((one, None) for one in olds), *((None, one) for one in news)]


def _tags(package: Package) -> str:
    # A variant's label distinguishes wheels with the same tags.
    is_wheel = package.source.endswith(".whl")
    label = split_wheel_file_name(package.source.rpartition("/")[2]).label if is_wheel else ""
    return "-".join((*package.metadata.tags, label))


def _python_and_machine(package: Package) -> str:
    python, abi, platform = package.metadata.tags
    return "-".join((python, abi, re.sub(r"manylinux(_\d+_\d+|\d+)_", "linux_", platform)))


def _unique(things: Iterable[Thing], key: Callable[[Thing], str]) -> Mapping[str, Thing]:
    """Return the items by key, without items that have no key or share their key."""
    found: dict[str, list[Thing]] = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return {name: group[0] for name, group in found.items() if name and len(group) == 1}


def _unversioned(path: str, package: Package) -> str:
    if not package.version:
        return ""
    version = re.escape(package.version)
    plain = re.sub(rf"(?<![\d.]){version}(?![\d.]*\d)", "*", plain_path(path, package))
    return plain if "*" in plain else ""


def _numbered_stem(item: Item) -> str:
    """Return the stem, the number of version parts after it, and whether the file is a link.

    A library often has several names.
    """
    stem = _stem(item)
    return f"{stem} {item.path.count('.') - stem.count('.')} {item.link is not None}" if stem else ""


def _stem(item: Item) -> str:
    plain = _LIBRARY_VERSION.sub(r"\1", item.path)
    return plain if plain != item.path else ""


if TYPE_CHECKING:
    PackagesByCode: TypeAlias = dict[tuple[str, str], set[str]]


_VERSION = re.compile(r"\.so(\.\d+)+$")


def with_moves(packages: Sequence[PackageChange], code: ArchivedCode = ArchivedCode()) -> list[PackageChange]:  # noqa: B008 (a frozen value)
    """Return the changes, including moved files (matched by path or SONAME) and moved GPU targets.

    Code that is now in a kpack archive has moved, regardless of the archive's name.
    """
    places = _places(packages)
    by_code = _packages_by_code(packages)
    return [_with_moved_targets(_with_moved_files(package, places), by_code, code) for package in packages]


def _places(packages: Iterable[PackageChange]) -> dict[str, str]:
    """Return the name of each added file's package, keyed by the file's path and by its SONAME."""
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


def _with_moved_targets(package: PackageChange, by_code: PackagesByCode, code: ArchivedCode) -> PackageChange:
    """Return the change with moved targets: targets that a file lost and for which other packages now have code."""
    carried = [_carried(file, package.name, by_code) | _archived(file, package.name, code) for file in package.files]
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


def _packages_by_code(packages: Iterable[PackageChange]) -> PackagesByCode:
    """Return the packages in which a file gained code for a target, keyed by the names of the file."""
    by_code: PackagesByCode = defaultdict(set)
    for package in packages:
        for file in package.files:
            soname = file.library.new_soname if file.library else ""
            for target in _targets_came(file):
                for name in _names(file.new_path, soname):
                    by_code[name, target].add(package.name)
    return by_code


def _carried(file: FileChange, package: str, by_code: PackagesByCode) -> frozenset[str]:
    """Return the targets that a file lost and that a file with the same name or library in another package gained."""
    names = _names(file.old_path, file.library.old_soname if file.library else "")
    return frozenset(
        target
        for target in _targets_went(file)
        if any(by_code.get((name, target), set()) - {package} for name in names)
    )


def _archived(file: FileChange, package: str, code: ArchivedCode) -> frozenset[str]:
    """Return the targets that a file lost and that are now in archives of any package."""
    return frozenset(target for target in _targets_went(file) if code.packages_with(package, file, target))


def _names(path: str, soname: str) -> set[str]:
    """Return the names that moved code keeps: path, file name without version, SONAME, or kernel library."""
    return {path, _VERSION.sub(".so", posixpath.basename(path)), library_of(path), soname} - {"", "/"}


def _targets_went(file: FileChange) -> frozenset[str]:
    of_path = kernel_targets(file.old_path) if file.status is Status.WENT else frozenset()
    return of_path.union(file.library.targets_went if file.library else ())


def _targets_came(file: FileChange) -> frozenset[str]:
    of_path = kernel_targets(file.new_path) if file.status is Status.CAME else frozenset()
    return of_path.union(file.library.targets_came if file.library else ())


_UNUSABLE = "inputs that can't be compared"


def without_unread(sides: Sequence[Side], unread: Sequence[RocwheelError]) -> list[Side]:
    """Return the sides without packages that have the name of an unreadable wheel or sdist.

    Raises the problems immediately if they aren't about such a file, or if a side would be empty.
    """
    names = {_distribution_of(problem) for problem in each_problem(unread)}
    left = [
        msgspec.structs.replace(side, packages=tuple(one for one in side.packages if one.name not in names))
        for side in sides
    ]
    if unread and ("" in names or not all(side.packages for side in left)):
        raise_all(_UNUSABLE, unread)
    return left


def _distribution_of(problem: RocwheelError) -> str:
    """Return the normalized name of a problem's distribution, or an empty string."""
    file_name = PurePath(str(problem.source).partition("!")[0]).name if isinstance(problem, InputError) else ""
    if file_name.endswith(".whl"):
        return canonicalize_name(file_name.partition("-")[0])
    return canonicalize_name(file_name.rpartition("-")[0]) if file_name.endswith(SDIST_SUFFIX) else ""
