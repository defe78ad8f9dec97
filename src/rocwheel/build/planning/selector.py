"""Plans the ``rocm`` distribution, which requires all others: an sdist that detects the GPU, or a wheel with extras."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.platform import Platform
from rocwheel.build.placement import canonical_order
from rocwheel.build.plan import PlannedSdist, PlannedWheel, TextMember
from rocwheel.build.planning.libraries import common_gpus, overlaid_libraries, windows_libraries
from rocwheel.build.planning.packages import PlacedPackage, PlanBasis
from rocwheel.build.recipe import is_per_variant, name_package
from rocwheel.build.sdk_source import SDK_LICENSE, render_literals, sdk_component, sdk_license, sdk_module
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import is_family, is_target, load_catalog, owned_targets, targets_of
from rocwheel.targets.compatibility import Fit, choose
from rocwheel.targets.kernel_files import is_kernel_file, targets_in_path, without_targets
from rocwheel.targets.target_set import target_of_product
from rocwheel.wheels.file_names import normalized_file_part
from rocwheel.wheels.metadata import CoreMetadata, render_metadata
from rocwheel.wheels.platform_floor import host_machines
from rocwheel.wheels.requirements import platforms_of_tag, refusing_requirement
from rocwheel.wheels.tags import parse_platforms
from rocwheel.wheels.writing import WheelName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.build.file_facts import Facts
    from rocwheel.build.planning.packages import PackageGroup, Release
    from rocwheel.build.recipe import Recipe


class SelectorFacts(msgspec.Struct, frozen=True):
    """The choices that the selector offers."""

    basis: PlanBasis
    packages: tuple[PlacedPackage, ...]
    """Every package except the selector itself, including devel."""
    families: dict[str, tuple[str, ...]]
    """The GPU targets of each choice. There is one choice for each device package or library family."""
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
        """Return whether the GPU determines the package, so that each target or family has its own distribution."""
        return is_per_variant(self.recipe.packages[key], self.basis.layout)

    def requirement(self, key: str, variant: str = "{family}") -> str:
        """Return the requirement for this version of a package, for a GPU target or family."""
        return f"{self.basis.names(key, variant).distribution}=={self.version}"


def make_selector_facts(group: PackageGroup) -> SelectorFacts:
    """Collect the choices from packages that are installed together.

    Raises `InputError` if the requested default is not one of the choices.
    """
    basis = group.basis
    keys = [key for key, package in basis.recipe.packages.items() if is_per_variant(package, basis.layout)]
    variants = dict.fromkeys(package.variant for package in group.packages if package.key in keys)
    served = _find_served((package for package in group.packages if package.key in keys), basis.facts)
    families = {
        variant: targets_of(variant) if is_family(variant) else (variant, *served.get(variant, ()))
        for variant in variants
    }
    if basis.release:
        # Both builds must offer the same choices, so additional targets that this build's code serves don't count.
        of_release = canonical_order(chain.from_iterable(basis.release.targets.values()))
        families = {target: (target,) for target in of_release}
    given = basis.options.default_family
    default = (target_of_product(given, source="--default-family") or given) or (
        next(iter(families)) if len(families) == 1 else ""
    )
    if default and default not in families:
        option, found = "--default-family", f"{default!r} has no packages"
        raise InputError(
            option,
            found,
            expected=f"one of {', '.join(families)}" if families else "no default, because there is nothing to select",
        )
    return SelectorFacts(basis, group.packages, families, default)


_KNOWN_SYSTEMS = ("glibc", "musl", "windows", "macos")


def _find_machines(basis: PlanBasis) -> dict[str, list[str]]:
    """Return the ``platform_machine`` values for each ``sys_platform`` value, based on the platform tag of the wheels.

    If the tag contains no machine, the package set is for Linux on unspecified machines.
    """
    machine = basis.facts.machine
    tags = basis.options.platform_tag or (basis.any_tag if machine in host_machines() else "any")
    parsed = parse_platforms(tags)
    if any(tag.system not in _KNOWN_SYSTEMS for tag in parsed):
        return {"linux": []}
    places = {place for tag in parsed for place in platforms_of_tag(tag.text)}
    return {platform: sorted(m for p, m in places if p == platform) for platform in sorted({p for p, _ in places})}


_ARCHIVE = ".kpack"


def _find_served(packages: Iterable[PlacedPackage], facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return the other targets whose GPUs can run the code of a package for one target, keyed by that target.

    Each of these targets is listed once, under the package whose code is the best match: relabeled code before generic
    code, and generic code for fewer processors first. Targets with their own package are omitted. A target that shares
    the package of another target is listed under that target if the package has code for it.
    """
    codes = {package.variant: _read_codes(package, facts) for package in packages if is_target(package.variant)}
    served: dict[str, tuple[str, ...]] = {}
    generics = [name for target in owned_targets() for name in load_catalog().generics_of(target)]
    for target in owned_targets():
        fits = ((variant, _fit(found, target)) for variant, found in codes.items())
        offers = [(how.rank, -generics.count(variant), variant) for variant, how in fits if how]
        if offers and target not in codes:
            best = max(offers)[-1]
            served[best] = (*served.get(best, ()), target)
    for row in load_catalog().targets:
        if any(code.processor == row.name for files in codes.get(row.package, ()) for code in files.targets):
            served[row.package] = (*served.get(row.package, ()), row.name)
    return served


class _Codes(msgspec.Struct, frozen=True):
    """The targets that a file has code for.

    ``named`` contains a kernel library's files with names that differ only in the target.
    """

    targets: tuple[TargetId, ...]
    named: bool

    def fit(self, gpu: TargetId) -> Fit:
        """Return how well the code matches a GPU. A kernel library opens only the file that is named after the GPU."""
        if self.named:
            return Fit.EXACT if any(target.processor == gpu.processor for target in self.targets) else Fit.NONE
        choice = choose(self.targets, gpu)
        return choice.fit if choice else Fit.NONE


def _read_codes(package: PlacedPackage, facts: Facts) -> list[_Codes]:
    named: dict[str, tuple[TargetId, ...]] = defaultdict(tuple)
    codes = []
    for path, entry in package.placement.files.items():
        targets = targets_in_path(path) if is_kernel_file(path) and not path.endswith(_ARCHIVE) else ()
        if targets:
            named[without_targets(path)] += targets
        elif held := tuple(parse_target_id(text, source=path) for text in facts.codes(entry)):
            codes.append(_Codes(held, named=False))
    return [*codes, *(_Codes(targets, named=True) for targets in named.values())]


def _fit(codes: Sequence[_Codes], target: str) -> Fit | None:
    """Return the worst fit of the code for a target, or `None` if some of the code doesn't run on the target's GPUs."""
    worst = min((code.fit(TargetId(target)) for code in codes), key=lambda how: how.rank, default=Fit.NONE)
    return worst if worst.rank >= Fit.GENERIC.rank else None


def build_info(facts: SelectorFacts, *, decides: bool) -> dict[str, object]:
    """Return the literals of ``_build_info.py`` (see ``sdk/README.md``). ``decides`` is true for an sdist.

    The sdist decides at install time.
    """
    if facts.basis.release:
        return _release_info(facts, facts.basis.release, decides=decides)
    recipe = facts.recipe
    present = {package.key for package in facts.packages}
    machines = _find_machines(facts.basis)
    families = {
        name: {"targets": list(targets), "platforms": list(machines)} for name, targets in facts.families.items()
    }
    selected = {
        extra: facts.requirement(key)
        for extra, keys in recipe.selector.extras.items()
        for key in keys
        if key in present and facts.is_selected(key)
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
        "OVERLAID": overlaid_libraries(facts.basis, facts.packages),
        "COMMON_GPUS": common_gpus(facts.basis, facts.packages),
        "UNLOADABLE": list(recipe.unloadable),
        **_required({key: facts.requirement(key) for key in recipe.selector.requires if key in present}),
        "EXTRAS": _extras(facts, present, decides=decides),
        "SELECTED": selected if decides else {},
    }


def _required(requirements: dict[str, str]) -> dict[str, list[str]]:
    """Return the unconditional requirements of `rocm`, including requirements that depend on the GPU."""
    chosen = [text for text in requirements.values() if "{family}" in text]
    fixed = [text for text in requirements.values() if text not in chosen]
    return {"REQUIRES": fixed, **({"REQUIRES_SELECTED": chosen} if chosen else {})}


_RELEASE_MACHINES = {Platform.LINUX: "x86_64", Platform.WINDOWS: "AMD64"}
"""Values of ``platform_machine`` for which ROCm exists on both platforms."""
PLATFORM_FACTS = "_platform_facts"
"""The module with information about a platform's libraries, in the package that `rocm` always requires."""


def platform_facts(facts: SelectorFacts) -> dict[str, object]:
    """Return the literals that describe this platform's files, which are known only to the build for this platform."""
    return {
        "LIBRARIES": _libraries(facts),
        "OVERLAID": overlaid_libraries(facts.basis, facts.packages),
        "COMMON_GPUS": common_gpus(facts.basis, facts.packages),
        "UNLOADABLE": list(facts.recipe.unloadable),
    }


def _release_info(facts: SelectorFacts, release: Release, *, decides: bool) -> dict[str, object]:
    """Return the literals of ``_build_info.py`` that the builds for all platforms can write.

    Facts about files are empty. Each platform's core package contains these facts (`platform_facts`).
    """
    layout, version = facts.basis.layout, facts.version
    recipes = release.recipes
    selector = recipes[Platform.LINUX].selector
    existing = {key: recipe for recipe in reversed(recipes.values()) for key in recipe.packages}
    names = {
        key: name_package(existing[key], key, layout)
        for key in recipes[Platform.LINUX].packages | existing
        if existing[key].packages[key].distribution_in(layout) is not None
    }
    suffix = facts.basis.options.module_suffix
    required = {key: f"{one.distribution}=={version}" for key, one in names.items()}
    systems = {key: [name.sys_platform for name, one in recipes.items() if key in one.packages] for key in names}
    families: dict[str, dict[str, list[str]]] = {
        target: {
            "targets": list(served),
            "platforms": [name.sys_platform for name, targets in release.targets.items() if target in targets],
        }
        for target, served in facts.families.items()
    }
    extras: dict[str, list[list[str]]] = {}
    selected: dict[str, str] = {}
    for extra, key in ((extra, key) for extra, keys in selector.extras.items() for key in keys):
        if not is_per_variant(existing[key].packages[key], layout):
            extras.setdefault(extra, []).append([required[key], _marker(systems[key])])
            continue
        selected[extra] = required[key]
        texts = family_extras(extra, required[key], facts.families, is_neutral=True)
        markers = {required[key].replace("{family}", name): _marker(row["platforms"]) for name, row in families.items()}
        extras |= {name: [[text, markers[text]] for text in rows] for name, rows in texts.items()}
        extras |= refusing_extras(extra, required[selector.requires[0]], facts.families)
    core = names[selector.requires[0]].module
    return {
        "VERSION": version,
        "LAYOUT": layout,
        "MODULE_SUFFIX": suffix,
        "PLATFORMS": [name.sys_platform for name in Platform],
        "MACHINES": {platform.sys_platform: [machine] for platform, machine in _RELEASE_MACHINES.items()},
        "FAMILIES": families,
        "DEFAULT_FAMILY": facts.default_family,
        "PACKAGES": {
            "meta": {"dist": selector.distribution, "module": selector.module, "platform_module": ""},
            **{
                key: {
                    "dist": one.distribution,
                    "module": one.module,
                    "platform_module": one.platform_module + suffix,
                }
                for key, one in names.items()
            },
        },
        "LIBRARIES": {},
        "OVERLAID": {},
        "COMMON_GPUS": [],
        "UNLOADABLE": [],
        **_required({key: required[key] for key in selector.requires}),
        "EXTRAS": extras,
        "SELECTED": selected if decides else {},
        "PLATFORM_FACTS": f"{core}.{PLATFORM_FACTS}",
    }


def _marker(systems: Sequence[str]) -> str:
    """Return the marker of a requirement that applies only to these values of ``sys_platform``."""
    if len(systems) == len(Platform):
        return ""
    return " or ".join(f"sys_platform == '{system}'" for system in systems)


def _libraries(facts: SelectorFacts) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries. A library that is missing from this SDK is optional."""
    if facts.basis.facts.platform is Platform.WINDOWS:
        return windows_libraries(facts.basis, facts.packages)
    rows: dict[str, dict[str, Any]] = {}
    for name, library in facts.recipe.libraries.items():
        packages = (package for package in facts.packages if package.key == library.package)
        pattern = f"{library.directory}/{library.pattern}"
        shipped = any(fnmatchcase(path, pattern) for package in packages for path in package.placement.files)
        row = {"package": library.package, "directory": library.directory, "pattern": library.pattern}
        rows[name] = {**row, "optional": not shipped}
    return rows


def _packages(facts: SelectorFacts, present: set[str]) -> dict[str, dict[str, str]]:
    selector = facts.recipe.selector
    rows = {"meta": {"dist": selector.distribution, "module": selector.module, "platform_module": ""}}
    for key in facts.recipe.packages:
        if key in present:
            names = facts.basis.names(key, "{family}")
            row = {"dist": names.distribution, "module": names.module}
            rows[key] = {**row, "platform_module": names.platform_module}
    return rows


def _extras(facts: SelectorFacts, present: set[str], *, decides: bool) -> dict[str, list[list[str]]]:
    extras: dict[str, list[list[str]]] = {}
    for extra, keys in facts.recipe.selector.extras.items():
        chosen = [key for key in keys if key in present and facts.is_selected(key)]
        fixed = [[facts.requirement(key), ""] for key in keys if key in present and key not in chosen]
        if chosen:
            per_family = [_family_extra(facts, extra, key) for key in chosen]
            extras.update(chain.from_iterable(rows.items() for rows in per_family))
        elif fixed:
            extras[extra] = fixed
        elif all(facts.recipe.packages[key].kind == "device" for key in keys):
            # Frameworks require rocm[libraries,device]. Without device packages, the extra is empty, but must exist.
            extras |= {extra: [], f"{extra}-all": []}
    return extras if decides else {name: rows for name, rows in extras.items() if rows or not facts.families}


def _family_extra(facts: SelectorFacts, extra: str, key: str) -> dict[str, list[list[str]]]:
    is_neutral = facts.basis.layout == "neutral"
    required = family_extras(extra, facts.requirement(key), facts.families, is_neutral=is_neutral)
    rows = {name: [[text, ""] for text in texts] for name, texts in required.items()}
    if is_neutral:
        rows |= refusing_extras(extra, facts.requirement(facts.recipe.selector.requires[0]), facts.families)
    return rows


def family_extras(
    prefix: str, requirement: str, families: Mapping[str, Sequence[str]], *, is_neutral: bool
) -> dict[str, list[str]]:
    """Return the requirements of family extras, keyed by extra.

    ``{family}`` in the requirement is a placeholder for each family.

    In a neutral layout, there is one extra for all families, and one for each target that uses another target's
    package.
    """
    wanted = {family: requirement.replace("{family}", family) for family in families}
    extras = {f"{prefix}-{canonicalize_name(family)}": [text] for family, text in wanted.items()}
    if is_neutral:
        extras[f"{prefix}-all"] = list(wanted.values())
        served = ((family, target) for family, targets in families.items() for target in targets)
        extras |= {f"{prefix}-{target}": [wanted[family]] for family, target in served if target not in families}
    return extras


def refusing_extras(extra: str, required: str, families: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return extras for targets that no family supports.

    Each extra contains a requirement that can't be satisfied and that states the reason.

    ``required`` is the requirement that `rocm` always has, ``NAME==VERSION``.
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


_PYPROJECT = """\
# The backend is part of this sdist, so that it builds in isolation and without an index.
[build-system]
requires = []
build-backend = "selector"
backend-path = ["src"]
"""


def _metadata(facts: SelectorFacts) -> CoreMetadata:
    recipe = facts.recipe
    return CoreMetadata(
        recipe.selector.distribution,
        facts.version,
        recipe.selector.summary,
        requires_python=recipe.requires_python,
        license_expression=SDK_LICENSE,  # the sdist contains only the SDK source and no ROCm files
        license_files=("LICENSE",),
    )


def plan_selector_sdist(facts: SelectorFacts, *, folder: str = "") -> PlannedSdist:
    """Return the sdist that chooses packages at install time. The sdist contains its own build backend."""
    module = facts.recipe.selector.module
    metadata = msgspec.structs.replace(_metadata(facts), dynamic=("requires-dist", "provides-extra"))
    info = build_info(facts, decides=True)
    files = {f"{module}/{path}": text for path, text in sdk_module("rocm_sdk").items()}
    files |= {f"selector/{path}": text for path, text in sdk_module("selector").items()}
    files[f"{module}/_build_info.py"] = render_literals(info)
    # Scripts that promote the reference's sdist edit these two files, which have setuptools' format.
    egg_info = f"{normalized_file_part(metadata.name)}.egg-info"
    files[f"{egg_info}/PKG-INFO"] = render_metadata(metadata).decode()
    files[f"{egg_info}/requires.txt"] = requires_txt(info)
    files = {f"src/{path}": text for path, text in files.items()}
    files["pyproject.toml"] = _PYPROJECT
    files["LICENSE"] = sdk_license()
    files["PKG-INFO"] = render_metadata(metadata).decode()
    return PlannedSdist(metadata.name, facts.version, metadata, files, folder)


def requires_txt(info: Mapping[str, Any]) -> str:
    """Return the requirements in setuptools' format: first without an extra, then in a section per extra and marker."""
    sections = [*info["REQUIRES"]]
    for extra, rows in info["EXTRAS"].items():
        sections += ["", f"[{extra}]", *(text for text, marker in rows if not marker)]
        for text, marker in rows:
            sections += ["", f"[{extra}:{marker}]", text] if marker else []
    return "\n".join([*sections, ""])


def plan_selector_wheel(facts: SelectorFacts, *, folder: str = "") -> PlannedWheel:
    """Return the pure wheel with an explicit extra for each target, which lock files need."""
    module = facts.recipe.selector.module
    info: dict[str, Any] = build_info(facts, decides=False)
    texts = sdk_module("rocm_sdk") | {"_build_info.py": render_literals(info)}
    metadata = msgspec.structs.replace(
        _metadata(facts), requires=selector_requirements(info), extras=tuple(info["EXTRAS"])
    )
    return PlannedWheel(
        "selector",
        WheelName(metadata.name, facts.version, "py3-none-any"),
        metadata,
        tuple(TextMember(f"{module}/{path}", text) for path, text in sorted(texts.items())),
        licenses=(TextMember("LICENSE", sdk_license()),),
        components=(sdk_component("LICENSE"),),
        console_scripts={"rocm-sdk": f"{module}._cli:main"},
        is_purelib=True,
        folder=folder,
    )


def selector_requirements(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the wheel's requirements, with extras as markers, from the literals in its ``_build_info.py``."""
    extras: dict[str, list[list[str]]] = info["EXTRAS"]
    rows = ((extra, *row) for extra, rows in extras.items() for row in rows)
    marked = (f"{text}; {f'({marker}) and ' if marker else ''}extra == '{extra}'" for extra, text, marker in rows)
    return (*info["REQUIRES"], *marked)
