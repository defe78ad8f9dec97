"""Device code in kpack archives: whose it is, and on the other side, whatever the archives are called there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.diffing.changes import FileChange
    from rocwheel.diffing.facts_of_items import FactsOfItems
    from rocwheel.diffing.values import Package

__all__ = ["ArchivedCode", "find_archived_code"]


class ArchivedCode(msgspec.Struct, frozen=True):
    """Whose code archives have, by the name that a split library has in them, and by GPU target."""

    holders: Mapping[tuple[str, str], frozenset[str]] = {}
    """The packages of the new side with the code of a name for a target."""
    archives: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = {}
    """Of archives of the old side, by package and path: the names and targets of the code."""
    libraries: Mapping[tuple[str, str], frozenset[str]] = {}
    """Of split libraries of the new side, by package and path: their names in archives."""

    def packages_with(self, package: str, file: FileChange, target: str) -> frozenset[str]:
        """Return the packages whose archives have the code for a target that a file lost, if they have all of it."""
        archived = self.archives.get((package, file.old_path), frozenset())
        names = {name for name, of in archived if of == target} | self.libraries.get((package, file.new_path), set())
        held = [self.holders.get((name, target), frozenset()) for name in names]
        return frozenset().union(*held) if all(held) else frozenset()


def find_archived_code(pairs: Iterable[tuple[Package | None, Package | None]], facts: FactsOfItems) -> ArchivedCode:
    """Return what the files that were read have in archives."""
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    archives: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
    libraries: dict[tuple[str, str], frozenset[str]] = {}
    for old, new in pairs:
        name = next((side.name for side in (old, new) if side), "")
        for item in old.items if old else ():
            if archived := facts.known(item).archived:
                archives[name, item.path] = archived
        for item in new.items if new else ():
            found = facts.known(item)
            if found.kernel_names:
                libraries[name, item.path] = found.kernel_names
            for key in found.archived:
                holders[key].add(name)
    return ArchivedCode({key: frozenset(names) for key, names in holders.items()}, archives, libraries)
