"""From a catalogue and a recipe to the plan of a build: a pure function of values."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.links import PrefixIndex
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.code_objects.target_id import processor_of
from rocwheel.binary.elf.facts import ElfKind
from rocwheel.packages.layout.placement import Placement, place_runtime
from rocwheel.packages.layout.prefixes import Prefixes, canonical_order, merge_prefixes
from rocwheel.packages.layout.selection import PrefixEntries, take_entries
from rocwheel.packages.plan import Dropped, Plan, PlannedWheel
from rocwheel.packages.planning.checks import check_complete, check_names
from rocwheel.packages.planning.declarations import declare_targets
from rocwheel.packages.planning.members import PlacedPackage
from rocwheel.packages.planning.options import PlanOptions, check_options, checked_version, compress_for
from rocwheel.packages.planning.selector import make_selector_facts, plan_selector_sdist, plan_selector_wheel
from rocwheel.packages.planning.warnings import review_plan
from rocwheel.packages.planning.wheels import WheelPlanner
from rocwheel.targets.spelling.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.recipe.recipe import Package, Recipe

__all__ = ["make_plan"]

_X86_64 = 62


def make_plan(catalog: Catalog, recipe: Recipe, facts: Facts, options: PlanOptions) -> Plan:
    """Plan every distribution of the recipe.

    Raises `ProblemsError` with every path on which artifacts differ, with everything that is expected
    and missing, or with every name that is too long; `InputError` for a version that is not :pep:`440`
    and other unusable options.
    """
    check_options(options)
    version = checked_version(catalog, options)
    expected = parse_target_set(options.targets, source="--targets", required=False).processors
    prefixes = merge_prefixes(catalog, recipe, facts)
    placed = _Placing(recipe, facts, prefixes, options.module_suffix).place_all()
    check_complete(catalog.root, recipe, prefixes.layout, placed, expected)
    plan = _Planning(catalog, recipe, facts, options, version, prefixes, placed).plan()
    check_names(plan)
    return plan


class _Placing:
    """Puts the files of every package in their places."""

    def __init__(self, recipe: Recipe, facts: Facts, prefixes: Prefixes, suffix: str) -> None:
        self._recipe = recipe
        self._facts = facts
        self._prefixes = prefixes
        self._suffix = suffix
        self._machine = host_machine(facts)

    def place_all(self) -> list[PlacedPackage]:
        placed: list[PlacedPackage] = []
        for key, package in self._recipe.packages.items():
            if package.distribution_in(self._prefixes.layout) is not None:
                for variant in self._variants(package):
                    placed += self._place(key, package, variant, placed)
        return placed

    def _variants(self, package: Package) -> Sequence[str]:
        if package.kind == "device":
            return self._prefixes.variants
        if "{family}" in (package.distribution_in(self._prefixes.layout) or "") or package.kind == "devel":
            return self._prefixes.families or ("",)
        return ("",)

    def _place(
        self, key: str, package: Package, variant: str, placed: Sequence[PlacedPackage]
    ) -> Iterator[PlacedPackage]:
        selected = take_entries(self._prefixes.trees[variant], package.take)
        if not selected:
            return
        distribution = package.distribution_in(self._prefixes.layout) or ""
        suffix = f"_{variant.replace('-', '_')}" if "{family}" in distribution else ""
        platform = package.platform_module or self._recipe.packages[package.overlay].platform_module
        yield PlacedPackage(
            key,
            variant,
            distribution.format(target=variant, family=variant),
            package.module + suffix if package.module else "",
            platform + suffix + self._suffix,
            self._placement(package, variant, selected, placed),
        )

    def _placement(
        self, package: Package, variant: str, selected: PrefixEntries, placed: Sequence[PlacedPackage]
    ) -> Placement:
        if package.kind == "devel":
            return Placement({}, {}, {}, ())
        trees = self._prefixes.trees
        prefix = PrefixIndex([*trees[variant].values(), *trees[""].values()])
        return place_runtime(selected, prefix, self._facts, _elsewhere(package, placed), self._machine)


class _Planning:
    """Makes the wheels and sdists of placed packages."""

    def __init__(
        self,
        catalog: Catalog,
        recipe: Recipe,
        facts: Facts,
        options: PlanOptions,
        version: str,
        prefixes: Prefixes,
        placed: Sequence[PlacedPackage],
    ) -> None:
        self._catalog = catalog
        self._recipe = recipe
        self._facts = facts
        self._options = options
        self._version = version
        self._prefixes = prefixes
        self._placed = placed
        self._targets = _code_targets(recipe, facts, placed)
        self._dropped: set[Dropped] = set()

    def plan(self) -> Plan:
        families = self._prefixes.families or ("",)
        wheels: dict[str, PlannedWheel] = {}
        sdists = []
        gaps: dict[str, None] = {}
        groups = []
        for family in families:
            folder = family if len(families) > 1 else ""
            group = self._installed_with(family)
            declared, report = declare_targets(list(self._wheels(group, folder)))
            groups.append(declared)
            wheels |= {f"{wheel.folder}/{wheel.name.file_name}": wheel for wheel in declared}
            gaps |= dict.fromkeys(map(str, report.gaps))
            selector = make_selector_facts(self._recipe, self._version, self._prefixes.layout, group, self._options)
            if self._options.selector == "sdist":
                sdists.append(plan_selector_sdist(selector, folder=folder))
            else:
                wheel = plan_selector_wheel(selector, folder=folder)
                wheels[f"{folder}/{wheel.name.file_name}"] = wheel
        return Plan(
            self._version,
            self._prefixes.layout,
            self._targets,
            tuple(wheels[key] for key in sorted(wheels)),
            tuple(sdists),
            tuple(sorted({*self._dropped, *self._not_placed()})),
            tuple(gaps),
            review_plan(self._catalog, self._recipe, self._facts, groups),
        )

    def _installed_with(self, family: str) -> list[PlacedPackage]:
        """Return the packages that are installed together: all of them, or those that serve one family."""
        if self._prefixes.layout == "neutral":
            return list(self._placed)
        return [package for package in self._placed if package.variant in ("", family)]

    def _wheels(self, group: Sequence[PlacedPackage], folder: str) -> Iterator[PlannedWheel]:
        machine, release = host_machine(self._facts), compress_for(self._catalog, self._options)
        planner = WheelPlanner(self._recipe, self._facts, group, self._version, machine, self._options, release)
        for package in group:
            kind = self._recipe.packages[package.key].kind
            if kind == "devel":
                yield msgspec.structs.replace(self._devel_wheel(planner, package), folder=folder)
            elif kind == "device":
                yield planner.device_wheel(package, self._licenses(package))
            else:
                yield planner.runtime_wheel(package, self._licenses(package), self._targets)

    def _devel_wheel(self, planner: WheelPlanner, package: PlacedPackage) -> PlannedWheel:
        tree = self._prefixes.trees[package.variant]
        selected = take_entries(tree, self._recipe.packages[package.key].take)
        prefix = PrefixIndex(tree.values())
        wheel, dropped = planner.devel_wheel(package, selected, prefix, self._licenses(package))
        self._dropped.update(dropped)
        return wheel

    def _licenses(self, package: PlacedPackage) -> PrefixEntries:
        """Return the licence texts of the artifacts in a package; all of the SDK's where those bring none."""
        if not self._recipe.license_patterns:
            return {}
        patterns = PathPatterns(self._recipe.license_patterns)
        names = {file.entry.artifact.name for file in package.placement.files.values()}
        tree = self._prefixes.trees[""] | self._prefixes.trees[package.variant]
        texts = {path: entry for path, entry in tree.items() if entry.source and patterns.matches(path)}
        own = {path: entry for path, entry in texts.items() if entry.artifact.name in names}
        return own or texts

    def _not_placed(self) -> Iterator[Dropped]:
        """Give what packages drop, and the artifacts with code for one target that no package takes anything of."""
        taken: set[tuple[str, str]] = set()
        for package in self._placed:
            yield from package.placement.dropped
            taken.update((file.entry.artifact.name, package.variant) for file in package.placement.files.values())
        for variant in self._prefixes.variants:
            entries = (entry for entry in self._prefixes.trees[variant].values() if entry.artifact.target != "generic")
            for artifact in {entry.artifact for entry in entries if entry.source}:
                if (artifact.name, variant) not in taken:
                    yield Dropped("", str(artifact), "no package takes this artifact")


def host_machine(facts: Facts) -> int:
    """Return the ELF machine of most host files; stubs for scripts, and wheels without ELF files, are made for it."""
    counts = Counter(elf.machine for elf in facts.elves.values() if elf.kind is not ElfKind.CODE_OBJECT)
    return counts.most_common(1)[0][0] if counts else _X86_64


def _elsewhere(package: Package, placed: Sequence[PlacedPackage]) -> dict[str, str]:
    """Return, for the paths that required packages ship, where they are relative to this one's platform module."""
    required = [other for other in placed if other.key in package.requires and not other.variant]
    return {
        path: f"../{other.platform_module}/{path}"
        for other in required
        for path in (*other.placement.files, *other.placement.stubs)
    }


def _code_targets(recipe: Recipe, facts: Facts, placed: Iterable[PlacedPackage]) -> tuple[str, ...]:
    """Return the processors that the packages have code for, as their files and names tell."""
    found = set()
    for package in placed:
        if recipe.packages[package.key].kind == "device":
            found.add(package.variant)
        for file in package.placement.files.values():
            if file.entry.source:
                found.update(processor_of(text) for text in facts.targets.get(file.entry.source, ()))
    return canonical_order(found)
