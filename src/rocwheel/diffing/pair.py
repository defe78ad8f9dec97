"""Pairs of packages, and of files, that correspond to each other on the two sides."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.diffing.values import Item
from rocwheel.distributions.formats.wheel_file_name import split_wheel_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rocwheel.diffing.values import Package

__all__ = ["Pairs", "pair_items", "pair_packages", "plain_path"]

Thing = TypeVar("Thing")
_LIBRARY_VERSION = re.compile(r"(\.so)(\.\d+)+$")
_INFO, _DATA = "*.dist-info", "*.data"


class Pairs(msgspec.Struct, frozen=True):
    """The files of two packages: those on both sides, those that went, and those that came."""

    both: tuple[tuple[Item, Item], ...]
    went: tuple[Item, ...]
    came: tuple[Item, ...]


def pair_items(old: Package, new: Package, soname_of: Callable[[Item], str]) -> Pairs:
    """Pair the files of two states of a package.

    By their paths, those in ``.dist-info`` without its version; what is left by paths without the packages' versions;
    then libraries by SONAME, which ``soname_of`` reads, and at last by file name without the library's version.
    """
    if len(old.items) == len(new.items) == 1 and not old.name and not new.name:
        return Pairs(((old.items[0], new.items[0]),), (), ())
    both: list[tuple[Item, Item]] = []
    # Of several members at one place, installers leave the last.
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
    """Pair packages by name; of several wheels of one name by their tags, first all of these, then Python and machine.

    One package on each side is one pair, whatever it is called.
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
    """Return a path without the name and version in the names of a package's own ``.dist-info`` and ``.data``."""
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
    # A variant's label tells wheels of the same tags apart.
    is_wheel = package.source.endswith(".whl")
    label = split_wheel_file_name(package.source.rpartition("/")[2]).label if is_wheel else ""
    return "-".join((*package.metadata.tags, label))


def _python_and_machine(package: Package) -> str:
    python, abi, platform = package.metadata.tags
    return "-".join((python, abi, re.sub(r"manylinux(_\d+_\d+|\d+)_", "linux_", platform)))


def _unique(things: Iterable[Thing], key: Callable[[Thing], str]) -> Mapping[str, Thing]:
    """Return things by their key, without those that share theirs, or have none."""
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
    """Return the stem with how many numbers follow, and whether it is a link: a library mostly has several names."""
    stem = _stem(item)
    return f"{stem} {item.path.count('.') - stem.count('.')} {item.link is not None}" if stem else ""


def _stem(item: Item) -> str:
    plain = _LIBRARY_VERSION.sub(r"\1", item.path)
    return plain if plain != item.path else ""
