"""What a recipe says for one platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.packages.recipe.recipe import PackageRules, PlatformRules

if TYPE_CHECKING:
    from rocwheel.binary.platform import Platform
    from rocwheel.packages.recipe.recipe import Package, Recipe

__all__ = ["recipe_for"]


def recipe_for(recipe: Recipe, platform: Platform) -> Recipe:
    """Return a recipe as it is on one platform: without rules by platform, and without packages that it lacks there.

    What other packages say of those is taken out with them, and so are extras that would add nothing.
    """
    rules = recipe.platforms.get(platform, PlatformRules())
    existing = [key for key in recipe.packages if rules.packages.get(key, PackageRules()).exists]
    packages = {key: _package(recipe.packages[key], rules.packages.get(key, PackageRules())) for key in existing}
    libraries = recipe.libraries if rules.libraries is None else rules.libraries
    return msgspec.structs.replace(
        recipe,
        packages={key: _among(package, existing) for key, package in packages.items()},
        selector=msgspec.structs.replace(
            recipe.selector,
            requires=_kept(recipe.selector.requires, existing),
            extras={extra: kept for extra, keys in recipe.selector.extras.items() if (kept := _kept(keys, existing))},
        ),
        libraries={name: library for name, library in libraries.items() if library.package in existing},
        unloadable=recipe.unloadable if rules.unloadable is None else rules.unloadable,
        leave_out=(*recipe.leave_out, *rules.leave_out),
        platforms={},
    )


def _package(package: Package, rules: PackageRules) -> Package:
    given = {name: getattr(rules, name) for name in ("take", "search", "unversioned", "console_scripts", "relays")}
    return msgspec.structs.replace(package, **{name: value for name, value in given.items() if value is not None})


def _among(package: Package, existing: list[str]) -> Package:
    """Return a package without its references to packages that don't exist."""
    search = tuple(place for place in package.search if place.partition(":")[0] in existing)
    return msgspec.structs.replace(package, requires=_kept(package.requires, existing), search=search)


def _kept(keys: tuple[str, ...], existing: list[str]) -> tuple[str, ...]:
    return tuple(key for key in keys if key in existing)
