"""The install prefixes that the artifacts of a catalogue merge into: one for all GPUs, and one for each variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.packages.layout.selection import PrefixEntries, merge_entries
from rocwheel.packages.recipe.recipe import Layout
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.families import expand_families, is_family, is_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["Prefixes", "canonical_order", "merge_prefixes"]

_GENERIC = "generic"


class Prefixes(msgspec.Struct, frozen=True):
    """Merged prefixes by variant.

    The empty variant is what serves every GPU. In a neutral layout the others are GPU targets, each with its own files
    alone; in a per-family layout they are target families, each with its own files over those that serve every GPU.
    """

    layout: Layout
    trees: dict[str, PrefixEntries]

    @property
    def variants(self) -> tuple[str, ...]:
        """The targets or families, in canonical order."""
        return tuple(variant for variant in self.trees if variant)

    @property
    def families(self) -> tuple[str, ...]:
        """The families of a per-family layout, none in a neutral one."""
        return self.variants if self.layout == "per-family" else ()


def merge_prefixes(catalog: Catalog, recipe: Recipe, facts: Facts) -> Prefixes:
    """Merge the artifacts of a catalogue.

    XNACK variants of a target share the prefix of their processor, and gfx1250-strict shares that of gfx1250. Raises
    `ProblemsError` with every path on which artifacts differ, `InputError` when the recipe forces a layout per family
    and there is none.
    """
    layout = recipe.layout or _layout_of(catalog)
    if layout == "per-family" and all(name.target == _GENERIC for name in catalog.artifacts):
        found, expected = "has no artifacts of a target family", "some: the recipe's layout is per-family"
        raise InputError(catalog.root, found, expected=expected, remedy="Take the layout out of the recipe.")
    parts: dict[str, list[Entry]] = {"": []}
    for entry in catalog.entries:
        parts.setdefault(_variant_of(entry), []).append(entry)
    variants = canonical_order(variant for variant in parts if variant)
    trees = {"": merge_entries(catalog.root, parts[""], facts, recipe.prefer)}
    for variant in variants:
        below = parts[""] if layout == "per-family" else []
        entries = sorted([*below, *parts[variant]], key=lambda entry: (entry.path, entry.artifact))
        trees[variant] = merge_entries(catalog.root, entries, facts, recipe.prefer)
    return Prefixes(layout, trees)


def canonical_order(targets: Iterable[str]) -> tuple[str, ...]:
    """Sort GPU targets as the catalogue does; families and targets that it doesn't know come last, by name."""
    names = set(targets)
    known = {name for name in names if is_target(name)}
    return (*expand_families(known, source="artifacts"), *sorted(names - known))


def _layout_of(catalog: Catalog) -> Layout:
    variants = {name.target for name in catalog.artifacts} - {_GENERIC}
    if not variants:
        return "neutral"
    if catalog.manifest is not None and "KPACK_SPLIT_ARTIFACTS" in catalog.manifest.flags:
        return "neutral" if catalog.manifest.kpack_split else "per-family"
    return "per-family" if any(map(is_family, variants)) else "neutral"


def _variant_of(entry: Entry) -> str:
    return "" if entry.artifact.target == _GENERIC else load_catalog().package_of(entry.artifact.base_target)
