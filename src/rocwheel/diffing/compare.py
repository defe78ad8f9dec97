"""The differences between two sides: packages are paired, then their files; only files that differ are read."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kind import HEAD_SIZE
from rocwheel.diffing.archived_code import find_archived_code
from rocwheel.diffing.changes import Comparison, FileChange, PackageChange, SideFacts, Status
from rocwheel.diffing.compare_items import compare_items, have_same_content, lost_targets
from rocwheel.diffing.compare_metadata import compare_metadata, plain_requirements
from rocwheel.diffing.facts_of_items import FactsOfItems
from rocwheel.diffing.kernel_libraries import find_lost_kernels
from rocwheel.diffing.moves import with_moves
from rocwheel.diffing.pair import pair_items, pair_packages
from rocwheel.diffing.values import Item, Package, Side
from rocwheel.distributions.formats.platforms.tags import split_tags
from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.foundation.workers import map_sized, open_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.diffing.pair import Pairs
    from rocwheel.foundation.errors import RocwheelError

__all__ = ["compare_sides"]


def compare_sides(old: Side, new: Side, *, unread: list[RocwheelError], progress: Progress = SILENT) -> Comparison:
    """Return what differs between two sides; what can't be read of their files is appended to ``unread``.

    Where one side has no distributions, files alone are compared, as if all packages were installed together. Raises
    `WorkError` where the system is at fault.
    """
    as_files = not (old.has_distributions and new.has_distributions)
    sides = [_as_files(side) if as_files and side.has_distributions else side for side in (old, new)]
    pairs = pair_packages(sides[0].packages, sides[1].packages)
    progress.begin(f"comparing {new.path} with {old.path}", old.size + new.size)
    facts = FactsOfItems(unread)
    names = Counter(package.name for pair in pairs for package in [pair[0] or pair[1]] if package)
    packages = [
        package if names[package.name] > 1 else msgspec.structs.replace(package, tags="")
        for package in (_compare_packages(*pair, facts, progress) for pair in pairs)
    ]
    progress.end()
    moved = with_moves(packages, find_archived_code(pairs, facts))
    moved = [
        msgspec.structs.replace(package, kernel_libraries=lost)
        for package, lost in zip(moved, find_lost_kernels(pairs), strict=True)
    ]
    order = sorted(moved, key=lambda package: (package.status is Status.CAME, package.name, package.tags))
    return Comparison(_side_facts(old), _side_facts(new), tuple(order), as_files)


def _as_files(side: Side) -> Side:
    items = {item.path: item for package in side.packages for item in package.items if not _is_metadata(item, package)}
    return Side(side.path, (Package(name="", source=side.path, items=tuple(items.values())),))


def _is_metadata(item: Item, package: Package) -> bool:
    return bool(package.dist_info) and item.path.startswith(f"{package.dist_info}/")


def _side_facts(side: Side) -> SideFacts:
    packed = [size for package in side.packages if (size := package.packed) is not None]
    files = sum(len(package.items) for package in side.packages)
    return SideFacts(side.path, len(side.packages), files, side.size, sum(packed) if packed else None)


def _compare_packages(old: Package | None, new: Package | None, facts: FactsOfItems, step: Progress) -> PackageChange:
    before = old or Package(name="", source="")
    after = new or Package(name="", source="")
    pairs = pair_items(*_of_one_kind(before, after), facts.soname)
    unequal = _unequal_pairs(pairs, facts, step)
    files = [*_changes(pairs, unequal, facts), *_moved_or_other_modes(pairs, unequal)]
    fields = compare_metadata(before, after) if old and new else ()
    went, replaced, came = _package_targets(pairs, unequal, facts)
    return PackageChange(
        status=_status(old, new, differs=bool(files or fields or before.version != after.version)),
        name=before.name or after.name,
        new_name=after.name if old and new and after.name != before.name else "",
        tags="-".join(filter(None, (before if old else after).metadata.tags)),
        old_platforms=tuple(filter(None, split_tags(before.metadata.tags[2]))),
        new_platforms=tuple(filter(None, split_tags(after.metadata.tags[2]))),
        new_pythons=tuple(filter(None, split_tags(after.metadata.tags[0]))),
        new_abis=tuple(filter(None, split_tags(after.metadata.tags[1]))),
        old_requires=plain_requirements(before),
        old_version=before.version,
        new_version=after.version,
        old_size=before.size,
        new_size=after.size,
        old_packed=before.packed,
        new_packed=after.packed,
        fields=fields,
        files=tuple(sorted(files, key=lambda file: file.path)),
        targets_went=went,
        targets_replaced=replaced,
        targets_came=came,
    )


def _of_one_kind(old: Package, new: Package) -> tuple[Package, Package]:
    """Return two packages, without their files where one alone is an sdist: a build may put them anywhere."""
    if not (old.name and new.name) or old.is_sdist == new.is_sdist:
        return old, new
    return msgspec.structs.replace(old, items=()), msgspec.structs.replace(new, items=())


def _unequal_pairs(pairs: Pairs, facts: FactsOfItems, step: Progress) -> list[tuple[Item, Item]]:
    """Return the pairs of files whose contents differ."""
    with open_workers() as executor:
        differ = map_sized(
            executor, lambda pair: _differ(pair[0], pair[1], facts, step), pairs.both, lambda pair: pair[0].size
        )
        differing = list(differ)
    return [pair for pair, differs in zip(pairs.both, differing, strict=True) if differs]


def _status(old: Package | None, new: Package | None, *, differs: bool) -> Status:
    if old and new:
        return Status.CHANGED if differs else Status.SAME
    return Status.WENT if old else Status.CAME


def _differ(old: Item, new: Item, facts: FactsOfItems, step: Progress) -> bool:
    try:
        if not have_same_content(old, new):
            return True
        for item in (old, new) if new.size < HEAD_SIZE else ():
            facts.read(item)  # equal files aren't read, but what ends within its header is told for next to nothing
    except WorkError:
        raise
    except InputError as e:
        facts.add_problem(e)
        return True
    else:
        return False
    finally:
        step.advance(old.size + new.size)


def _changes(pairs: Pairs, unequal: Sequence[tuple[Item, Item]], facts: FactsOfItems) -> Iterable[FileChange]:
    every: list[tuple[Item | None, Item | None]] = [*unequal]
    every += [(item, None) for item in pairs.went]
    every += [(None, item) for item in pairs.came]
    with open_workers() as executor:
        items = [item for pair in every for item in pair if item]
        list(map_sized(executor, facts.read, items, lambda item: item.size))
    return (compare_items(old, new, facts.of(old), facts.of(new)) for old, new in every)


def _moved_or_other_modes(pairs: Pairs, unequal: Sequence[tuple[Item, Item]]) -> Iterable[FileChange]:
    """Yield the files of equal content that have another mode or, of libraries, another name."""
    seen = {id(old) for old, _ in unequal}
    for old, new in pairs.both:
        change = compare_items(old, new, *FactsOfItems.NONE)
        has_other_name = old.name != new.name
        if id(old) not in seen and (has_other_name or _has_other_mode(change)):
            yield msgspec.structs.replace(change, has_other_content=False)


def _has_other_mode(change: FileChange) -> bool:
    return None not in (change.old_mode, change.new_mode) and change.old_mode != change.new_mode


def _package_targets(
    pairs: Pairs, unequal: Sequence[tuple[Item, Item]], facts: FactsOfItems
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the targets that a package has no code for any more, those that other code serves, and the new ones.

    Files that are equal on both sides are read only where one of them may have code for a target that is in question.
    """
    before = facts.targets(chain((old for old, _ in unequal), pairs.went))
    after = facts.targets(chain((new for _, new in unequal), pairs.came))
    if before == after:
        return (), (), ()
    changed = {id(new) for _, new in unequal}
    shared = facts.targets(new for _, new in pairs.both if id(new) not in changed)
    went, replaced = lost_targets(before, after | shared)
    return went, replaced, tuple(sorted(after - before - shared))
