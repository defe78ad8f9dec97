"""How packages and their modules are named: in each layout, for each GPU target or family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.linking.known.sdk_names import family_module

if TYPE_CHECKING:
    from rocwheel.packages.recipe.recipe import Layout, Package, Recipe

__all__ = ["PackageNames", "for_variant", "is_per_family", "is_per_variant", "name_package"]

_FAMILY = "{family}"
_TARGET = "{target}"


class PackageNames(msgspec.Struct, frozen=True):
    """The names of one distribution and of its modules."""

    distribution: str
    module: str
    """The pure Python module; empty for a package without one."""
    platform_module: str
    """The folder in site-packages that its files go into; for a device package, that of the package it completes."""


def is_per_variant(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution for each GPU target or family."""
    name = package.distribution_in(layout) or ""
    return _TARGET in name or _FAMILY in name


def is_per_family(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution, with modules of its own, for each GPU family."""
    return _FAMILY in (package.distribution_in(layout) or "")


def for_variant(text: str, variant: str) -> str:
    """Return a text of the recipe with a GPU target or family in place of ``{target}`` and ``{family}``."""
    return text.replace(_TARGET, variant).replace(_FAMILY, variant)


def name_package(recipe: Recipe, key: str, layout: Layout, variant: str = _FAMILY) -> PackageNames:
    """Return the names of the package ``key`` for a GPU target or family; by default with ``{family}`` in its place.

    Modules take the family into their names where the distribution does, with underscores.
    """
    package = recipe.packages[key]
    completed = recipe.packages.get(package.overlay, package)
    module, platform_module = package.module, package.platform_module or completed.platform_module
    if is_per_family(package, layout):
        module = module and family_module(module, variant)
        platform_module = family_module(platform_module, variant)
    return PackageNames(
        for_variant(package.distribution_in(layout) or "", variant),
        module,
        platform_module,
    )
