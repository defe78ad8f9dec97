"""Packages that are installed together in one site-packages: what each finds there of the others."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.packages.planning.basis import PlanBasis
from rocwheel.packages.planning.members import MemberMaker, installed_places
from rocwheel.packages.planning.place_packages import PlacedPackage
from rocwheel.targets.overlay_names import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.linking.run_path_choice import LibraryPlaces
    from rocwheel.packages.recipe.recipe import Package

__all__ = ["PackageGroup"]


class PackageGroup(msgspec.Struct, frozen=True, dict=True):
    """All packages of a neutral layout, or those that serve one family."""

    basis: PlanBasis
    packages: tuple[PlacedPackage, ...]

    @cached_property
    def by_key(self) -> dict[str, PlacedPackage]:
        """The packages by their names in the recipe, without device packages, of which there are several to a name."""
        return {package.key: package for package in self.packages if self.recipe_of(package).kind != "device"}

    @cached_property
    def overlaid(self) -> tuple[PlacedPackage, ...]:
        """The packages into whose folders device packages go: whatever is there has its counterpart in the devel tree.

        Frameworks that know TheRock's packages rely on that.
        """
        keys = {package.overlay for package in self.basis.recipe.packages.values() if package.overlay}
        return tuple(package for key, package in self.by_key.items() if key in keys)

    @cached_property
    def places(self) -> LibraryPlaces:
        """Where the shared libraries of all packages are."""
        return installed_places(self.packages)

    def recipe_of(self, package: PlacedPackage) -> Package:
        """Return what the recipe says about a package."""
        return self.basis.recipe.packages[package.key]

    def required(self, package: PlacedPackage) -> list[str]:
        """Return the names of the distributions that a package requires by the recipe, without absent ones."""
        return [self.by_key[key].distribution for key in self.recipe_of(package).requires if key in self.by_key]

    def folders(self, places: Iterable[str], package: PlacedPackage) -> tuple[str, ...]:
        """Return the folders that ``package:directory`` places of a package lead to, without those of absent packages.

        They are relative to site-packages.
        """
        modules = {key: other.platform_module for key, other in self.by_key.items()}
        modules[package.key] = package.platform_module
        pairs = (place.partition(":") for place in places)
        return tuple(posixpath.join(modules[key], folder) for key, _, folder in pairs if key in modules)

    def member_maker(self, package: PlacedPackage) -> MemberMaker:
        """Return what makes the members of a package."""
        return MemberMaker(self.basis, self.places, self.folders(self._search(package), package))

    def _search(self, package: PlacedPackage) -> tuple[str, ...]:
        """Return where a package's files look for libraries: those that stand in for a library, where that looks."""
        spec = self.recipe_of(package)
        if not any(map(split_overlay_path, package.placement.files)):
            return spec.search
        return tuple(dict.fromkeys((*self.basis.recipe.packages[spec.overlay].search, *spec.search)))
