"""From a catalogue and a recipe to the plan of a build: a pure function of values."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import InvalidVersion, Version

from rocwheel.artifacts.links import PrefixIndex
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.elf import ElfKind
from rocwheel.errors import InputError
from rocwheel.packages.completeness import check_complete
from rocwheel.packages.members import PlacedPackage
from rocwheel.packages.placement import Placement, place_runtime
from rocwheel.packages.plan import Dropped, Plan, PlannedSdist, PlannedWheel
from rocwheel.packages.selection import Tree, merge_entries, take_entries
from rocwheel.packages.selector import SelectorFacts, plan_selector_sdist, plan_selector_wheel
from rocwheel.packages.wheels import DevelCompression, WheelPlanner
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.families import base_target, expand_families, is_family, is_target, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.packages.facts import Facts
    from rocwheel.packages.recipe import Layout, Package, Recipe

__all__ = ["PlanOptions", "make_plan"]

_GENERIC = "generic"
_X86_64 = 62


class PlanOptions(msgspec.Struct, frozen=True):
    """What a build is asked for beyond its inputs."""

    version: str | None = None
    """Version of all distributions; by default the SDK manifest's."""
    module_suffix: str = ""
    """Appended to the names of platform modules, so that several builds fit one environment."""
    targets: tuple[str, ...] = ()
    """GPU targets or families that must be there; empty for no such check."""
    default_family: str = ""
    selector: Literal["sdist", "wheel"] = "sdist"
    devel_compression: DevelCompression = "none"
    platform_tag: str | None = None


def make_plan(catalog: Catalog, recipe: Recipe, facts: Facts, options: PlanOptions) -> Plan:
    """Plan every distribution of the recipe.

    Raises `ProblemsError` with every path on which artifacts differ, or with everything that is expected and missing;
    `InputError` for a version that is not :pep:`440`.
    """
    return _Planner(catalog, recipe, facts, options).plan()


class _Planner:
    def __init__(self, catalog: Catalog, recipe: Recipe, facts: Facts, options: PlanOptions) -> None:
        self._catalog = catalog
        self._recipe = recipe
        self._facts = facts
        self._options = options
        self._layout = recipe.layout or _layout_of(catalog)
        self._version = _version(catalog, options)
        self._machine = _host_machine(facts)
        if not re.fullmatch(r"[A-Za-z0-9_]*", options.module_suffix):
            option, found = "--version-suffix", f"is {options.module_suffix!r}"
            raise InputError(option, found, expected="letters, digits and underscores, as in a module's name")
        self._dropped: set[Dropped] = set()

    def plan(self) -> Plan:
        placed = self._place_all()
        expected = expand_families(self._options.targets, source="--targets")
        check_complete(self._catalog.root, self._recipe, self._layout, placed, expected)
        families = self._families or ("",)
        wheels: dict[str, PlannedWheel] = {}
        for family in families:
            group = [package for package in placed if self._layout == "neutral" or package.variant in ("", family)]
            folder = family if len(families) > 1 else ""
            wheels |= {f"{wheel.folder}/{wheel.name.file_name}": wheel for wheel in self._wheels(group, family, folder)}
        sdists = [self._selector_sdist(placed, family, families) for family in families]
        self._dropped.update(package_dropped for package in placed for package_dropped in package.placement.dropped)
        return Plan(
            self._version,
            self._layout,
            self._all_targets(placed),
            tuple(wheels[key] for key in sorted(wheels)),
            tuple(sdist for sdist in sdists if sdist is not None),
            tuple(sorted(self._dropped)),
        )

    @cached_property
    def _families(self) -> tuple[str, ...]:
        """The target families that libraries are built for in a per-family layout."""
        if self._layout == "neutral":
            return ()
        return tuple(sorted({name.target for name in self._catalog.artifacts if name.target != _GENERIC}))

    @cached_property
    def _trees(self) -> dict[str, Tree]:
        """Merged prefixes by variant: target-neutral under the empty name, then one per target or family."""
        names = self._catalog.artifacts
        variants = self._families or _canonical_order({name.base_target for name in names if name.target != _GENERIC})
        trees = {"": self._merge(entry for entry in self._catalog.entries if entry.artifact.target == _GENERIC)}
        for variant in variants:
            neutral = (_GENERIC,) if self._layout == "per-family" else ()
            wanted = {variant, *neutral}
            trees[variant] = self._merge(
                entry for entry in self._catalog.entries if _variant_of(entry, self._layout) in wanted
            )
        return trees

    def _merge(self, entries: Iterable[Entry]) -> Tree:
        return merge_entries(self._catalog.root, entries, self._facts, self._recipe.prefer)

    def _place_all(self) -> list[PlacedPackage]:
        placed: list[PlacedPackage] = []
        for key, package in self._recipe.packages.items():
            if package.distribution_in(self._layout) is not None:
                for variant in self._variants(package):
                    placed += self._place(key, package, variant, placed)
        return placed

    def _variants(self, package: Package) -> Sequence[str]:
        if package.kind == "device":
            return [variant for variant in self._trees if variant]
        if "{family}" in (package.distribution_in(self._layout) or "") or package.kind == "devel":
            return self._families or ("",)
        return ("",)

    def _place(
        self, key: str, package: Package, variant: str, placed: Sequence[PlacedPackage]
    ) -> Iterator[PlacedPackage]:
        tree = self._trees[variant]
        selected = take_entries(tree, package.take)
        if not selected:
            return
        platform = package.platform_module or self._recipe.packages[package.overlay].platform_module
        part = variant.replace("-", "_")
        suffix = f"_{part}" if "{family}" in (package.distribution_in(self._layout) or "") else ""
        placement = Placement({}, {}, {}, ())
        if package.kind != "devel":
            prefix = PrefixIndex([*tree.values(), *self._trees[""].values()])
            elsewhere = _elsewhere(package, placed)
            placement = place_runtime(selected, prefix, self._facts, elsewhere, self._machine)
        yield PlacedPackage(
            key,
            variant,
            (package.distribution_in(self._layout) or "").format(target=variant, family=variant),
            package.module + suffix if package.module else "",
            platform + suffix + self._options.module_suffix,
            placement,
        )

    def _wheels(self, group: Sequence[PlacedPackage], family: str, folder: str) -> Iterator[PlannedWheel]:
        options = self._options
        planner = WheelPlanner(self._recipe, self._facts, group, self._version, self._machine, options.platform_tag)
        targets = self._all_targets(group)
        for package in group:
            kind = self._recipe.packages[package.key].kind
            if kind == "devel":
                yield self._devel_wheel(planner, package, folder)
            elif kind == "device":
                yield planner.device_wheel(package, self._licenses(package))
            else:
                yield planner.runtime_wheel(package, self._licenses(package), targets)
        if options.selector == "wheel":
            yield plan_selector_wheel(self._selector_facts(group, family), folder=folder)

    def _devel_wheel(self, planner: WheelPlanner, package: PlacedPackage, folder: str) -> PlannedWheel:
        tree = self._trees[package.variant]
        selected = take_entries(tree, self._recipe.packages[package.key].take)
        prefix = PrefixIndex(tree.values())
        wheel, dropped = planner.devel_wheel(package, selected, prefix, self._options.devel_compression)
        self._dropped.update(dropped)
        return msgspec.structs.replace(wheel, folder=folder)

    def _licenses(self, package: PlacedPackage) -> Tree:
        patterns = PathPatterns(self._recipe.license_patterns) if self._recipe.license_patterns else None
        names = {file.entry.artifact.name for file in package.placement.files.values()}
        tree = self._trees[""] | self._trees[package.variant]
        return {
            path: entry
            for path, entry in tree.items()
            if patterns and entry.source and entry.artifact.name in names and patterns.matches(path)
        }

    def _selector_sdist(
        self, placed: Sequence[PlacedPackage], family: str, families: Sequence[str]
    ) -> PlannedSdist | None:
        if self._options.selector != "sdist":
            return None
        group = [package for package in placed if self._layout == "neutral" or package.variant in ("", family)]
        return plan_selector_sdist(self._selector_facts(group, family), folder=family if len(families) > 1 else "")

    def _selector_facts(self, group: Sequence[PlacedPackage], family: str) -> SelectorFacts:
        if family:
            families = {family: targets_of(family) if is_family(family) else (family,)}
        else:
            families = {package.variant: (package.variant,) for package in group if package.variant}
        if self._options.default_family and self._options.default_family not in families:
            option, found = "--default-family", f"{self._options.default_family!r} has no packages"
            raise InputError(option, found, expected=f"one of {', '.join(families) or 'none: nothing is selected'}")
        served = {target for targets in families.values() for target in targets}
        unavailable = tuple(row.name for row in load_catalog().targets if row.name not in served) if families else ()
        options = self._options
        return SelectorFacts(
            self._recipe,
            self._version,
            self._layout,
            tuple(group),
            families,
            options.default_family,
            unavailable,
            suffix=options.module_suffix,
        )

    def _all_targets(self, group: Iterable[PlacedPackage]) -> tuple[str, ...]:
        """Return the processors that the packages have code for, as their files and names tell."""
        found = set()
        for package in group:
            if self._recipe.packages[package.key].kind == "device":
                found.add(package.variant)
            for file in package.placement.files.values():
                if file.entry.source:
                    found.update(base_target(text) for text in self._facts.targets.get(file.entry.source, ()))
        return _canonical_order(found)


def _canonical_order(targets: Iterable[str]) -> tuple[str, ...]:
    """Sort GPU targets as the catalogue does; those it doesn't know come last."""
    known = [target for target in targets if is_target(target)]
    return (*expand_families(known, source="artifacts"), *sorted(set(targets) - set(known)))


def _elsewhere(package: Package, placed: Sequence[PlacedPackage]) -> dict[str, str]:
    """Return, for the paths that required packages ship, where they are relative to this one's platform module."""
    required = [other for other in placed if other.key in package.requires and not other.variant]
    return {
        path: f"../{other.platform_module}/{path}"
        for other in required
        for path in (*other.placement.files, *other.placement.stubs)
    }


def _layout_of(catalog: Catalog) -> Layout:
    if catalog.manifest is not None and "KPACK_SPLIT_ARTIFACTS" in catalog.manifest.flags:
        return "neutral" if catalog.manifest.kpack_split else "per-family"
    return "per-family" if any(is_family(name.target) for name in catalog.artifacts) else "neutral"


def _variant_of(entry: Entry, layout: Layout) -> str:
    return entry.artifact.base_target if layout == "neutral" else entry.artifact.target


def _host_machine(facts: Facts) -> int:
    """Return the machine of most files: stubs for scripts are made for it."""
    counts = Counter(elf.machine for elf in facts.elves.values() if elf.kind is not ElfKind.CODE_OBJECT)
    return counts.most_common(1)[0][0] if counts else _X86_64


def _version(catalog: Catalog, options: PlanOptions) -> str:
    manifest = catalog.manifest
    text = options.version or (manifest and (manifest.rocm_package_version or manifest.rocm_version)) or ""
    source = "--version" if options.version else f"{catalog.root}: the SDK manifest's version"
    if not text:
        found, expected = "tells no version", "rocm_package_version in its manifest"
        raise InputError(catalog.root, found, expected=expected, remedy="Give one with --version.")
    try:
        return str(Version(text))
    except InvalidVersion as e:
        expected = "a version as PEP 440 defines it, such as 7.2.0 or 7.2.0rc1"
        raise InputError(source, f"is {text!r}", expected=expected, remedy="Give one with --version.") from e
