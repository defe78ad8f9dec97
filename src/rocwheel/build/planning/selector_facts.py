"""What the selector chooses from: packages, families, and the targets and machines that they serve."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.build.planning.packages import PlacedPackage, PlanBasis
from rocwheel.build.recipe import is_per_variant
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import is_family, is_target, load_catalog, owned_targets, targets_of
from rocwheel.targets.compatibility import Fit, choose
from rocwheel.targets.kernel_files import is_kernel_file, targets_in_path, without_targets
from rocwheel.targets.target_set import target_of_product
from rocwheel.wheels.platform_floor import host_machines
from rocwheel.wheels.requirements import platforms_of_tag
from rocwheel.wheels.tags import parse_platforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.build.facts import Facts
    from rocwheel.build.planning.packages import PackageGroup
    from rocwheel.build.recipe import Recipe


_UNKNOWN: dict[str, list[str]] = {"linux": []}
_KNOWN = ("glibc", "musl", "windows", "macos")


def find_machines(basis: PlanBasis) -> dict[str, list[str]]:
    """Return the values of ``platform_machine`` by those of ``sys_platform``, from the tag that the wheels get.

    Where that names no machine, the set is for Linux, whose machines nobody has said.
    """
    machine = basis.facts.machine
    tags = basis.options.platform_tag or (basis.any_tag if machine in host_machines() else "any")
    parsed = parse_platforms(tags)
    if any(tag.system not in _KNOWN for tag in parsed):
        return _UNKNOWN
    places = {place for tag in parsed for place in platforms_of_tag(tag.text)}
    return {platform: sorted(m for p, m in places if p == platform) for platform in sorted({p for p, _ in places})}


_ARCHIVE = ".kpack"


def find_served(packages: Iterable[PlacedPackage], facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return, by the variant of each package for one target, the other targets whose GPUs run the code in it.

    Each of these is named once, for the package whose code suits it best: relabeled code before generic code, and
    generic code for fewer processors before that for more. Targets with a package of their own are left out. A target
    that shares the package of another one is with that, if it has code of its own there.
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
    """The targets that a file has code for; ``named`` are files of a kernel library that differ by these alone."""

    targets: tuple[TargetId, ...]
    named: bool

    def fit(self, gpu: TargetId) -> Fit:
        """Return how the code suits a GPU; a kernel library opens only the file that is named for it."""
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
    """Return how the code that suits a target least does so; none where there is code that its GPUs don't run."""
    worst = min((code.fit(TargetId(target)) for code in codes), key=lambda how: how.rank, default=Fit.NONE)
    return worst if worst.rank >= Fit.GENERIC.rank else None


class SelectorFacts(msgspec.Struct, frozen=True):
    """What the selector chooses from."""

    basis: PlanBasis
    packages: tuple[PlacedPackage, ...]
    """Every package but the selector itself, devel included."""
    families: dict[str, tuple[str, ...]]
    """What can be selected, with the GPU targets that each serves; one entry per device package or library family."""
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
        """Return whether a package is chosen by GPU: there is one distribution for each target or family."""
        return is_per_variant(self.recipe.packages[key], self.basis.layout)

    def requirement(self, key: str, variant: str = "{family}") -> str:
        """Return the requirement of a package for a GPU target or family, in this version."""
        return f"{self.basis.names(key, variant).distribution}=={self.version}"


def make_selector_facts(group: PackageGroup) -> SelectorFacts:
    """Collect what can be selected among packages that are installed together.

    Raises `InputError` when the default that was asked for is not among it.
    """
    basis = group.basis
    keys = [key for key, package in basis.recipe.packages.items() if is_per_variant(package, basis.layout)]
    variants = dict.fromkeys(package.variant for package in group.packages if package.key in keys)
    served = find_served((package for package in group.packages if package.key in keys), basis.facts)
    families = {
        variant: targets_of(variant) if is_family(variant) else (variant, *served.get(variant, ()))
        for variant in variants
    }
    given = basis.options.default_family
    default = (target_of_product(given, source="--default-family") or given) or (
        next(iter(families)) if len(families) == 1 else ""
    )
    if default and default not in families:
        option, found = "--default-family", f"{default!r} has no packages"
        raise InputError(option, found, expected=f"one of {', '.join(families) or 'none: nothing is selected'}")
    return SelectorFacts(basis, group.packages, families, default)
