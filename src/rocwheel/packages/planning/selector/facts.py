"""The packages, families and targets that the selector chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.packages.planning.basis import PlanBasis
from rocwheel.packages.planning.place_packages import PlacedPackage
from rocwheel.packages.planning.selector.served_targets import find_served
from rocwheel.packages.recipe.names import is_per_variant
from rocwheel.targets.catalog.families import is_family, targets_of
from rocwheel.targets.spelling.products import target_of_product

if TYPE_CHECKING:
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["SelectorFacts", "make_selector_facts"]


class SelectorFacts(msgspec.Struct, frozen=True):
    """What the selector chooses from."""

    basis: PlanBasis
    packages: tuple[PlacedPackage, ...]
    """Every package but the selector itself, devel included."""
    families: dict[str, tuple[str, ...]]
    """What can be selected, with the GPU targets that each serves; one entry per device package or library family."""
    default_family: str = ""

    @property
    def recipe(self) -> Recipe:
        """The recipe."""
        return self.basis.recipe

    @property
    def version(self) -> str:
        """The version of every distribution."""
        return self.basis.version

    def is_selected(self, key: str) -> bool:
        """Return whether a package is chosen by GPU: there is one distribution for each target or family."""
        return is_per_variant(self.recipe.packages[key], self.basis.layout)

    def requirement(self, key: str, variant: str = "{family}") -> str:
        """Return the requirement of a package for a GPU target or family, in this version."""
        return f"{self.basis.names(key, variant).distribution}=={self.version}"


def make_selector_facts(group: PackageGroup) -> SelectorFacts:
    """Collect what can be selected among packages that are installed together.

    Raises `InputError` when the default that was asked for is not among it.
    """
    basis = group.basis
    keys = [key for key, package in basis.recipe.packages.items() if is_per_variant(package, basis.layout)]
    variants = dict.fromkeys(package.variant for package in group.packages if package.key in keys)
    served = find_served((package for package in group.packages if package.key in keys), basis.facts)
    families = {
        variant: targets_of(variant) if is_family(variant) else (variant, *served.get(variant, ()))
        for variant in variants
    }
    given = basis.options.default_family
    default = (target_of_product(given, source="--default-family") or given) or (
        next(iter(families)) if len(families) == 1 else ""
    )
    if default and default not in families:
        option, found = "--default-family", f"{default!r} has no packages"
        raise InputError(option, found, expected=f"one of {', '.join(families) or 'none: nothing is selected'}")
    return SelectorFacts(basis, group.packages, families, default)
