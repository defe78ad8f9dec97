"""The literals of the selector's ``_build_info.py``: packages, libraries, families and extras."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from rocwheel.binary.platform import Platform
from rocwheel.distributions.formats.requirements.requirements import refusing_requirement
from rocwheel.packages.planning.selector.dlls import windows_libraries
from rocwheel.packages.planning.selector.machines import find_machines
from rocwheel.packages.planning.selector.overlays import common_gpus, overlaid_libraries
from rocwheel.targets.catalog.owned_targets import owned_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.packages.planning.selector.facts import SelectorFacts
    from rocwheel.packages.recipe.recipe import PublicLibrary

__all__ = ["build_info", "refusing_extras"]


def build_info(facts: SelectorFacts, *, decides: bool) -> dict[str, object]:
    """Return the literals of ``_build_info.py`` (see ``sdk/README.md``); the sdist ``decides`` at install time."""
    recipe = facts.recipe
    present = {package.key for package in facts.packages}
    machines = find_machines(facts.basis)
    families = {
        name: {"targets": list(targets), "platforms": list(machines)} for name, targets in facts.families.items()
    }
    return {
        "VERSION": facts.version,
        "LAYOUT": facts.basis.layout,
        "MODULE_SUFFIX": facts.basis.options.module_suffix,
        "PLATFORMS": list(machines),
        "MACHINES": machines,
        "FAMILIES": families,
        "DEFAULT_FAMILY": facts.default_family,
        "PACKAGES": _packages(facts, present),
        "LIBRARIES": _libraries(facts),
        "OVERLAID": overlaid_libraries(facts),
        "COMMON_GPUS": common_gpus(facts),
        "UNLOADABLE": list(recipe.unloadable),
        "REQUIRES": [facts.requirement(key) for key in recipe.selector.requires if key in present],
        "EXTRAS": _extras(facts, present, decides=decides),
        "SELECTED": _selected(facts, present) if decides else {},
    }


def _libraries(facts: SelectorFacts) -> dict[str, dict[str, Any]]:
    if facts.basis.facts.platform is Platform.WINDOWS:
        return windows_libraries(facts)
    return {name: _library(facts, row) for name, row in facts.recipe.libraries.items()}


def _library(facts: SelectorFacts, library: PublicLibrary) -> dict[str, Any]:
    """Return the row of a public library; one that this SDK was built without is optional."""
    shipped = (path for package in facts.packages if package.key == library.package for path in package.placement.files)
    pattern = f"{library.directory}/{library.pattern}"
    return {
        "package": library.package,
        "directory": library.directory,
        "pattern": library.pattern,
        "optional": not any(fnmatchcase(path, pattern) for path in shipped),
    }


def _packages(facts: SelectorFacts, present: set[str]) -> dict[str, dict[str, str]]:
    selector = facts.recipe.selector
    rows = {"meta": {"dist": selector.distribution, "module": selector.module, "platform_module": ""}}
    for key in facts.recipe.packages:
        if key in present:
            names = facts.basis.names(key, "{family}")
            rows[key] = {
                "dist": names.distribution,
                "module": names.module,
                "platform_module": names.platform_module,
            }
    return rows


def _extras(facts: SelectorFacts, present: set[str], *, decides: bool) -> dict[str, list[list[str]]]:
    extras: dict[str, list[list[str]]] = {}
    for extra, keys in facts.recipe.selector.extras.items():
        chosen = [key for key in keys if key in present and facts.is_selected(key)]
        fixed = [[facts.requirement(key), ""] for key in keys if key in present and key not in chosen]
        if chosen:
            per_family = [_family_extra(facts, extra, key) for key in chosen]
            extras.update(itertools.chain.from_iterable(rows.items() for rows in per_family))
        elif fixed:
            extras[extra] = fixed
        elif all(facts.recipe.packages[key].kind == "device" for key in keys):
            # Frameworks ask for rocm[libraries,device]: without device packages there is nothing to add, yet no error.
            extras |= {extra: [], f"{extra}-all": []}
    return extras if decides else {name: rows for name, rows in extras.items() if rows or not facts.families}


def _family_extra(facts: SelectorFacts, extra: str, key: str) -> dict[str, list[list[str]]]:
    rows = {f"{extra}-{canonicalize_name(family)}": [[facts.requirement(key, family), ""]] for family in facts.families}
    if facts.basis.layout == "neutral":
        rows[f"{extra}-all"] = [pair for pairs in list(rows.values()) for pair in pairs]
        rows |= _served_extras(facts, extra, key)
        rows |= refusing_extras(extra, facts.requirement(facts.recipe.selector.requires[0]), facts.families)
    return rows


def _served_extras(facts: SelectorFacts, extra: str, key: str) -> dict[str, list[list[str]]]:
    """Return the extras of targets whose GPUs run the code of another target's package."""
    return {
        f"{extra}-{target}": [[facts.requirement(key, family), ""]]
        for family, targets in facts.families.items()
        for target in targets
        if target not in facts.families
    }


def refusing_extras(extra: str, required: str, families: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return the extras of targets that no family serves; each has a requirement that can't be met and says why.

    ``required`` is what `rocm` requires in any case, ``NAME==VERSION``.
    """
    if not families:
        return {}
    served = {target for targets in families.values() for target in targets}
    name, _, version = required.partition("==")
    public = version.partition("+")[0]
    return {
        f"{extra}-{target}": [[refusing_requirement(name, public, target, families), ""]]
        for target in owned_targets()
        if target not in served
    }


def _selected(facts: SelectorFacts, present: set[str]) -> dict[str, str]:
    return {
        extra: facts.requirement(key)
        for extra, keys in facts.recipe.selector.extras.items()
        for key in keys
        if key in present and facts.is_selected(key)
    }
