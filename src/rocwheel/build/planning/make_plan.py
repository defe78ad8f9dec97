"""Creates a build plan from a catalog and a recipe, without side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.catalog import PrefixIndex
from rocwheel.binary.code_objects import parse_target_id, processor_of
from rocwheel.binary.platform import Platform
from rocwheel.build.placement import (
    GENERIC,
    Prefixes,
    canonical_order,
    leave_out,
    leave_out_targets,
    merge_prefixes,
    take_entries,
)
from rocwheel.build.plan import Dropped, Plan, PlannedSdist, PlannedWheel
from rocwheel.build.planning.checks import (
    check_complete,
    check_names,
    check_release,
    check_selector,
    check_targets,
    review_plan,
    unlisted_targets,
)
from rocwheel.build.planning.devel import plan_devel_wheel
from rocwheel.build.planning.licensed_components import license_files
from rocwheel.build.planning.options import PlanOptions, check_options, checked_version, compress_for, expected_targets
from rocwheel.build.planning.packages import PackageGroup, PlacedPackage, PlanBasis, Release, place_packages
from rocwheel.build.planning.selector import (
    PLATFORM_FACTS,
    build_info,
    make_selector_facts,
    plan_selector_sdist,
    plan_selector_wheel,
    platform_facts,
)
from rocwheel.build.planning.wheels import plan_device_wheel, plan_runtime_wheel
from rocwheel.build.recipe import recipe_for
from rocwheel.build.sdk_source import render_literals
from rocwheel.build.variant_wheels import plan_variants
from rocwheel.environment.coherence import CoherenceReport, WheelFacts, check_coherence, wheel_package_targets
from rocwheel.targets.catalog import is_family
from rocwheel.targets.declaration import encode_declaration
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.build.file_facts import Facts
    from rocwheel.build.recipe import Recipe


def make_plan(catalog: Catalog, recipe: Recipe, facts: Facts, options: PlanOptions) -> Plan:
    """Plan every distribution of the recipe.

    Raises `ProblemsError` with all paths whose content differs between artifacts, all missing files and packages, or
    all names that are too long. Raises `InputError` for a version that doesn't follow :pep:`440` and for other invalid
    options.
    """
    check_options(options)
    version = checked_version(catalog, options)
    expected = expected_targets(options, facts.platform)
    recipes = {platform: recipe_for(recipe, platform) for platform in Platform}
    recipe = recipes[facts.platform]
    catalog, left_out = leave_out(catalog, recipe)
    if options.targets:
        variants = {name.target if is_family(name.target) else processor_of(name.target) for name in catalog.artifacts}
        check_targets(catalog.root, variants - {GENERIC}, expected)
        selected = parse_target_set(options.targets, source="--targets").processors
        catalog, others = leave_out_targets(catalog, set(selected))
        left_out = (*left_out, *others)
    prefixes = merge_prefixes(catalog, recipe, facts)
    compressed_for = compress_for(catalog, options)
    basis = PlanBasis(recipe, facts, options, version, prefixes.layout, compressed_for, catalog.manifest)
    if options.linux_families and options.windows_families and prefixes.layout == "neutral":
        targets = {
            platform: tuple(one.processor for one in expected_targets(options, platform)) for platform in Platform
        }
        basis = msgspec.structs.replace(basis, release=Release(recipes, targets))
    placed = place_packages(basis, prefixes)
    check_complete(catalog.root, recipe, prefixes.layout, placed, expected)
    check_release(catalog.root, basis, placed)
    plan = _plan(catalog, basis, prefixes, placed)
    check_names(plan)
    return msgspec.structs.replace(plan, dropped=(*plan.dropped, *left_out)) if left_out else plan


class _PlannedGroup(msgspec.Struct, frozen=True):
    """The distributions that are installed together."""

    wheels: list[PlannedWheel]
    selector: PlannedSdist | PlannedWheel
    gaps: tuple[str, ...]
    dropped: list[Dropped]


def _plan(catalog: Catalog, basis: PlanBasis, prefixes: Prefixes, placed: Sequence[PlacedPackage]) -> Plan:
    # The processors that the packages have code for, according to their files and names.
    found = set()
    for package in placed:
        if basis.recipe.packages[package.key].kind == "device":
            found.add(package.variant)
        for entry in package.placement.files.values():
            found.update(map(processor_of, basis.facts.codes(entry)))
    targets = canonical_order(found)
    groups = [_plan_group(basis, prefixes, placed, family, targets) for family in prefixes.families or ("",)]
    wheels: dict[str, PlannedWheel] = {}
    for group in groups:
        selector = [group.selector] if isinstance(group.selector, PlannedWheel) else []
        wheels |= {f"{wheel.folder}/{wheel.name.file_name}": wheel for wheel in (*group.wheels, *selector)}
    selecting = plan_variants(wheels.values()) if basis.options.variants else ()
    wheels |= {f"{wheel.folder}/{wheel.name.file_name}": wheel for wheel in selecting}
    dropped = {*_not_placed(prefixes, placed), *(row for group in groups for row in group.dropped)}
    return Plan(
        basis.version,
        prefixes.layout,
        targets,
        tuple(wheels[key] for key in sorted(wheels)),
        tuple(group.selector for group in groups if isinstance(group.selector, PlannedSdist)),
        tuple(sorted(dropped)),
        tuple(dict.fromkeys(gap for group in groups for gap in group.gaps)),
        (
            *review_plan(catalog, basis.recipe, basis.facts, [group.wheels for group in groups]),
            *unlisted_targets(basis, placed),
        ),
        basis.facts.platform,
    )


def _plan_group(
    basis: PlanBasis, prefixes: Prefixes, placed: Sequence[PlacedPackage], family: str, targets: Sequence[str]
) -> _PlannedGroup:
    """Plan the packages that are installed together: all packages, or the packages for one family."""
    folder = family if len(prefixes.families) > 1 else ""
    together = [package for package in placed if prefixes.layout == "neutral" or package.variant in ("", family)]
    group = PackageGroup(basis, tuple(together))
    dropped: list[Dropped] = []
    facts = make_selector_facts(group)
    modules: dict[str, dict[str, str]] = {}
    if basis.release:
        modules[basis.recipe.selector.requires[0]] = {f"{PLATFORM_FACTS}.py": render_literals(platform_facts(facts))}
    wheels = _wheels(group, prefixes, targets, folder, dropped, modules)
    declared, report = declare_targets(list(wheels))
    decides = basis.options.selector == "sdist"
    check_selector(build_info(facts, decides=decides), declared, basis, decides=decides)
    plan_selector = plan_selector_sdist if decides else plan_selector_wheel
    return _PlannedGroup(declared, plan_selector(facts, folder=folder), tuple(map(str, report.gaps)), dropped)


def _wheels(
    group: PackageGroup,
    prefixes: Prefixes,
    targets: Sequence[str],
    folder: str,
    dropped: list[Dropped],
    modules: Mapping[str, dict[str, str]],
) -> Iterator[PlannedWheel]:
    """Yield the wheel of each package. Append entries that the devel tar can't contain to ``dropped``.

    ``modules`` contains the source of additional Python modules, keyed by package and file name.
    """
    basis = group.basis
    for package in group.packages:
        spec, tree = group.recipe_of(package), prefixes.trees[package.variant]
        selected = take_entries(tree, spec.take) if spec.kind == "devel" else package.placement.files
        licensed = license_files(selected.values(), prefixes.trees[""] | tree, basis.recipe, basis.manifest)
        if spec.kind == "devel":
            wheel, left_out = plan_devel_wheel(group, package, selected, PrefixIndex(tree.values()), licensed)
            dropped += left_out
            yield msgspec.structs.replace(wheel, folder=folder)
        elif spec.kind == "device":
            yield plan_device_wheel(group, package, licensed)
        else:
            yield plan_runtime_wheel(group, package, licensed, targets, modules.get(package.key, {}))


def declare_targets(wheels: list[PlannedWheel]) -> tuple[list[PlannedWheel], CoherenceReport]:
    """Compare wheels that are installed together.

    Return the wheels with their declarations, and the result of the comparison.

    A wheel without device code declares only that fact, so that its contents don't depend on the packages that are
    built with it.
    """
    facts = [
        WheelFacts(
            wheel.name.file_name,
            canonicalize_name(wheel.name.distribution),
            wheel.metadata.requires,
            tuple(parse_target_id(text, source=wheel.name.file_name) for text in wheel.targets),
            frozenset(member.path.partition("/")[0] for member in wheel.members),
        )
        for wheel in wheels
    ]
    report = check_coherence(wheel_package_targets(facts))
    declared = (encode_declaration(known.targets, report.recorded if known.targets else None) for known in facts)
    both = zip(wheels, declared, strict=True)
    return [msgspec.structs.replace(wheel, declaration=data.decode()) for wheel, data in both], report


def _not_placed(prefixes: Prefixes, placed: Iterable[PlacedPackage]) -> Iterator[Dropped]:
    """Yield the entries that packages leave out, and artifacts for a single target that no package uses."""
    taken: set[tuple[str, str]] = set()
    for package in placed:
        yield from package.placement.dropped
        taken.update((entry.artifact.name, package.variant) for entry in package.placement.files.values())
    for variant in prefixes.variants:
        entries = (entry for entry in prefixes.trees[variant].values() if entry.artifact.target != "generic")
        for artifact in {entry.artifact for entry in entries if entry.source}:
            if (artifact.name, variant) not in taken:
                yield Dropped("", str(artifact), "no package uses this artifact")
