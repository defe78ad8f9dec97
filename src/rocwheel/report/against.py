"""Compares sizes with an older state, for each package, file, and GPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.diff.facts import FactsOfItems
from rocwheel.diff.pairs import pair_items, pair_packages
from rocwheel.report.values import Against, FileGrowth, PackageGrowth, SizeChange, TargetGrowth, part_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.diff.sides import Item, Package
    from rocwheel.report.inputs import ReadFiles
    from rocwheel.report.values import FileFacts, PackageFacts


def compare_with(path: str, old: ReadFiles, new: ReadFiles) -> Against:
    """Return the size differences between an older state, which is at ``path``, and a new state.

    Packages and files are matched in the same way as in ``rocwheel diff``. Contents aren't compared: files with the
    same size are omitted.
    """
    sides = _Side(old), _Side(new)
    pairs = pair_packages(sides[0].packages, sides[1].packages)
    packages = [_package_growth(*(side.facts_of(one) for side, one in zip(sides, pair, strict=True))) for pair in pairs]
    files = [growth for pair in pairs for growth in _file_growths(pair, sides)]
    return Against(
        path,
        old.totals,
        tuple(one for one in packages if one.fate is not SizeChange.SAME or one.old_packed != one.packed),
        tuple(sorted(files, key=lambda one: (-abs(one.size - one.old_size), one.package, one.path))),
        _target_growths(old.files, new.files),
    )


class _Side:
    """One of the two states, with the data about each package and file."""

    def __init__(self, read: ReadFiles) -> None:
        self.packages = [holding.package for holding in read.holdings]
        self._read = read  # keeps the objects alive, because their identities are keys of dictionaries
        self._numbers = {id(package): number for number, package in enumerate(self.packages)}
        self._files = {id(item): file for item, file in zip(read.items, read.files, strict=True)}

    def facts_of(self, package: Package | None) -> PackageFacts | None:
        """Return the data about a package, or `None` if there is no package."""
        return None if package is None else self._read.packages[self._numbers[id(package)]]

    def file_of(self, item: Item | None) -> FileFacts | None:
        """Return the data about a file, or `None` if there is no file.

        If several members have the same path, installers keep only the last one.
        """
        return None if item is None else self._files[id(item)]


def _package_growth(old: PackageFacts | None, new: PackageFacts | None) -> PackageGrowth:
    one = new or old
    sizes = (old.size if old else 0), (new.size if new else 0)
    fate = _fate(old is not None, new is not None, *sizes)
    return PackageGrowth(
        one.label if one else "", fate, *sizes, old.packed if old else None, new.packed if new else None
    )


def _file_growths(pair: tuple[Package | None, Package | None], sides: tuple[_Side, _Side]) -> Iterator[FileGrowth]:
    old, new = pair
    facts = sides[1].facts_of(new) or sides[0].facts_of(old)
    label = facts.label if facts else ""
    for one, other in _paired(old, new):
        before, after = sides[0].file_of(one), sides[1].file_of(other)
        growth = _file_growth(label, before, after)
        if growth.fate is not SizeChange.SAME:
            yield growth


def _paired(old: Package | None, new: Package | None) -> Iterator[tuple[Item | None, Item | None]]:
    if old and new:
        pairs = pair_items(old, new, FactsOfItems([]).soname)
        yield from pairs.both
        yield from ((item, None) for item in pairs.went)
        yield from ((None, item) for item in pairs.came)
    else:
        yield from ((item, None) for item in (old.items if old else ()))
        yield from ((None, item) for item in (new.items if new else ()))


def _file_growth(label: str, old: FileFacts | None, new: FileFacts | None) -> FileGrowth:
    sizes = (old.size if old else 0), (new.size if new else 0)
    return FileGrowth(
        label,
        _fate(old is not None, new is not None, *sizes),
        old.path if old else "",
        new.path if new else "",
        *sizes,
        old.packed if old else None,
        new.packed if new else None,
    )


def _fate(is_old: bool, is_new: bool, old_size: int, size: int) -> SizeChange:  # whether each side has the item
    if is_old and is_new:
        return SizeChange.SAME if old_size == size else SizeChange.GREW if old_size < size else SizeChange.SHRANK
    return SizeChange.WENT if is_old else SizeChange.CAME


def _target_growths(old: Iterable[FileFacts], new: Iterable[FileFacts]) -> tuple[TargetGrowth, ...]:
    before, after = _by_target(old), _by_target(new)
    ordered = sorted({*before, *after}, key=part_sort_key)
    growths = (TargetGrowth(target, before[target], after[target]) for target in ordered)
    return tuple(growth for growth in growths if growth.old_size != growth.size)


def _by_target(files: Iterable[FileFacts]) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in files:
        for part in file.parts:
            if part.target:
                found[part.target] += part.size
    return found
