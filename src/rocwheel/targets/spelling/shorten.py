"""Shorter words for targets: the families that hold exactly them, and the generic processors that serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import TargetId
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.spelling.target_set import TargetSet

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["fold_to_families", "fold_to_generics"]


def fold_to_families(targets: TargetSet) -> tuple[str, ...]:
    """Return the fewest words for exactly these targets: the largest families that they fill, then single targets.

    A target that sets features belongs to no family.
    """
    left = {target.processor for target in targets if not target.features}
    names: list[str] = []
    for family in sorted(load_catalog().families, key=lambda row: (-len(row.targets), row.name)):
        if len(family.targets) > 1 and left.issuperset(family.targets):
            names.append(family.name)
            left.difference_update(family.targets)
    singles = (str(target) for target in targets if target.features or target.processor in left)
    return (*names, *singles)


def fold_to_generics(targets: TargetSet) -> TargetSet:
    """Return a set that serves every target with generic code where a generic processor covers it, else with its own.

    Features are kept when the generic processor has them and its members here all name the same ones.
    """
    folded = {_generic_for(target) for target in targets}
    named: dict[str, set[frozenset[str]]] = {}
    for target in folded:
        named.setdefault(target.processor, set()).add(frozenset(target.features))
    # Code that leaves its features open serves each setting, and one set can't name both.
    return TargetSet.of(t if len(named[t.processor]) == 1 else TargetId(t.processor) for t in folded)


def _generic_for(target: TargetId) -> TargetId:
    catalog = load_catalog()
    names: Iterable[str] = catalog.generics_of(target.processor)
    for name in names:
        if set(target.features) <= set(catalog.processor(name).features):
            return TargetId(name, **target.features)
    return target
