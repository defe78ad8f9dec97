"""Where the SDK's packages keep shared libraries in site-packages, by the recipe that they are built with."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.errors import InputError

if TYPE_CHECKING:
    from rocwheel.packages.recipe import Package, Recipe

__all__ = ["sdk_search_folders"]

_LIBRARIES = "libraries"
_SOURCE = "recipe"


def sdk_search_folders(recipe: Recipe, family: str = "") -> tuple[str, ...]:
    """Return the folders that a framework's libraries may lead their run paths to, in the order of the recipe.

    They are those that the recipe's libraries package searches itself. ``family`` names the packages of one target
    family, for an SDK in the per-family layout. Raises `InputError` when the recipe has no such package.
    """
    package = recipe.packages.get(_LIBRARIES)
    if package is None:
        found = f"has no package {_LIBRARIES!r}"
        raise InputError(_SOURCE, found, expected="one whose search folders frameworks follow")
    return tuple(dict.fromkeys(_folder(place, recipe, family) for place in package.search))


def _folder(place: str, recipe: Recipe, family: str) -> str:
    key, _, folder = place.partition(":")
    return posixpath.join(_platform_module(recipe.packages[key], family), folder)


def _platform_module(package: Package, family: str) -> str:
    per_family = family and "{family}" in (package.distribution_in("per-family") or "")
    return package.platform_module + (f"_{family.replace('-', '_')}" if per_family else "")
