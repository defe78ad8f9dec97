"""Which distributions there are, for which GPU target or family each is, and where its files go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import PrefixIndex
from rocwheel.packages.layout.placement import Placement, place_runtime
from rocwheel.packages.layout.selection import take_entries
from rocwheel.packages.recipe.names import is_per_family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.packages.layout.prefixes import Prefixes
    from rocwheel.packages.planning.basis import PlanBasis
    from rocwheel.packages.recipe.recipe import Package

__all__ = ["PlacedPackage", "place_packages"]


class PlacedPackage(msgspec.Struct, frozen=True):
    """One distribution with its files in place, before its members are made."""

    key: str
    """The package's name in the recipe."""
    variant: str
    """The target or family that it is for; empty when there is one for all."""
    distribution: str
    module: str
    platform_module: str
    placement: Placement


def place_packages(basis: PlanBasis, prefixes: Prefixes) -> list[PlacedPackage]:
    """Put the files of every package in their places, and leave out packages that there are no files for.

    Raises `ProblemsError` with every pair of different files for one place.
    """
    placed: list[PlacedPackage] = []
    for key, package in basis.recipe.packages.items():
        if package.distribution_in(prefixes.layout) is not None:
            for variant in _variants(package, prefixes):
                found = _place(basis, prefixes, key, variant, placed)
                placed += [found] if found else []
    return placed


def _variants(package: Package, prefixes: Prefixes) -> Sequence[str]:
    if package.kind == "device":
        return prefixes.variants
    if is_per_family(package, prefixes.layout) or package.kind == "devel":
        return prefixes.families or ("",)
    return ("",)


def _place(
    basis: PlanBasis, prefixes: Prefixes, key: str, variant: str, placed: Sequence[PlacedPackage]
) -> PlacedPackage | None:
    package, names = basis.recipe.packages[key], basis.names(key, variant)
    selected = take_entries(prefixes.trees[variant], package.take)
    if not selected:
        return None
    placement = Placement({}, {}, {}, ())
    if package.kind != "devel":
        prefix = PrefixIndex([*prefixes.trees[variant].values(), *prefixes.trees[""].values()])
        placement = place_runtime(selected, prefix, basis.facts, _elsewhere(package, placed))
    return PlacedPackage(key, variant, names.distribution, names.module, names.platform_module, placement)


def _elsewhere(package: Package, placed: Sequence[PlacedPackage]) -> dict[str, str]:
    """Return, for the paths that required packages ship, where they are relative to this one's platform module."""
    required = [other for other in placed if other.key in package.requires and not other.variant]
    return {
        path: f"../{other.platform_module}/{path}"
        for other in required
        for path in (*other.placement.files, *other.placement.stubs)
    }
