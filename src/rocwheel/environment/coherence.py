"""Checks whether packages that depend on each other have code for the same GPUs.

The rule comes from Gentoo's rocm.eclass (``ROCM_REQUIRED_USE`` and ``ROCM_USEDEP``). At least one target is enabled,
and each dependency of a package has every target that the package has. A dependency without device code, such as a
compiler or headers, doesn't limit the targets. Packages without any device code are coherent.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_names import is_divided
from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.core.workers import raise_all
from rocwheel.environment.library_code import (
    CodeGap,
    FileCode,
    Reach,
    without_lost,
)
from rocwheel.targets.catalog import families_of, load_catalog
from rocwheel.targets.compatibility import covers, settings_of
from rocwheel.targets.declaration import RecordedCoherence
from rocwheel.targets.target_set import TargetSet, id_sort_key
from rocwheel.wheels.requirements import (
    RequirementError,
    applies,
    asked_for,
    follow_requirements,
    parse_requirement,
    requirements_for_extra,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from packaging.requirements import Requirement


_FEATURE_CHOICES = ((), *((feature,) for feature in FEATURES), FEATURES)


class PackageTargets(msgspec.Struct, frozen=True):
    """A package, the targets of its binaries, and the names of the packages that it needs."""

    name: str
    targets: tuple[TargetId, ...] = ()
    requires: tuple[str, ...] = ()
    part_of: str = ""
    """The package that this package completes, for example, with the kernels for one GPU.

    This package's code counts as the completed package's code.
    """
    lost: tuple[TargetId, ...] = ()
    """Targets for which one of its libraries finds no code, even if other libraries have code for them."""


class Gap(msgspec.Struct, frozen=True):
    """A target that ``package`` lacks and ``wanted_by`` has.

    ``wanted_by`` is another package or the list of required targets.
    """

    package: str
    target: TargetId
    wanted_by: str
    carried: tuple[TargetId, ...]

    def __str__(self) -> str:
        carried = ", ".join(map(str, self.carried)) or "no device code"
        return f"{self.package} lacks {self.target}, which {self.wanted_by} has; {self.package} has {carried}"


class Misdeclared(msgspec.Struct, frozen=True):
    """A package whose binaries have code for different processors than its control file declares in ``field``."""

    package: str
    field: str
    declared: tuple[TargetId, ...]
    carried: tuple[TargetId, ...]
    holders: tuple[tuple[TargetId, str], ...]
    """The undeclared targets in the binaries, each with the file that contains the target's code."""

    @property
    def absent(self) -> tuple[TargetId, ...]:
        """The declared targets for which the binaries have no code."""
        found = {target.processor for target in self.carried}
        return tuple(target for target in self.declared if target.processor not in found)

    def __str__(self) -> str:
        declared, carried, absent = (", ".join(map(str, ids)) for ids in (self.declared, self.carried, self.absent))
        found = [f"{target} is in {holder} but not declared" for target, holder in self.holders]
        found += [f"no file has code for {absent}"] if absent else []
        lead = f"{self.package} declares {declared} in {self.field}, but its files have code for {carried}"
        return shortened(f"{lead}: {'; '.join(found)}")


class CoherenceReport(msgspec.Struct, frozen=True):
    """The result of `check_coherence`."""

    packages: tuple[str, ...]
    common: tuple[TargetId, ...]
    """The targets that every package with device code serves."""
    gaps: tuple[Gap, ...]
    has_device_code: bool
    """Whether any of the packages has device code."""
    absent: tuple[str, ...] = ()
    """Packages that are needed but not given. Their code wasn't compared."""
    unusable: tuple[CodeGap, ...] = ()
    """Targets for which libraries have code that they can't find."""
    leaves: tuple[Gap, ...] = ()
    """Targets that are missing only from packages that no other package needs."""
    is_divided: bool = False
    misdeclared: tuple[Misdeclared, ...] = ()

    @property
    def divided(self) -> bool:
        """Whether the needed packages with device code share no target.

        If no package needs another, all packages with device code are considered.
        """
        return self.has_device_code and self.is_divided

    @property
    def recorded(self) -> RecordedCoherence:
        """The summary that a wheel records when it is built."""
        return RecordedCoherence(self.packages, tuple(map(str, self.common)), tuple(map(str, self.gaps)))

    @property
    def coherent(self) -> bool:
        """Whether each package serves its declared targets and its users' targets.

        In addition, all needed packages must share a target.
        """
        fails = any(gap.reach is Reach.FAILS for gap in self.unusable)
        return not self.gaps and not fails and not self.divided and not self.misdeclared


def check_coherence(
    packages: Sequence[PackageTargets],
    required: Iterable[TargetId] = (),
    unusable: Sequence[CodeGap] = (),
    misdeclared: Iterable[Misdeclared] = (),
) -> CoherenceReport:
    """Compare each package with its dependencies, and each package that has device code with ``required``.

    If no package has device code, every package lacks the required targets. A dependency that isn't given is only
    listed. Targets in ``unusable`` don't count as served. Raises `InputError` for a package that is given twice.
    """
    lost: dict[str, list[TargetId]] = {}
    for gap in unusable:
        lost.setdefault(gap.file.package, []).extend(gap.targets if gap.is_lost else ())
    packages = [msgspec.structs.replace(one, lost=tuple(lost.get(one.name, ()))) for one in packages]
    groups = _Groups(packages)
    carrying = {package.name for package in packages if package.targets}  # lost targets count
    carrying |= {whole.name for whole in groups.wholes if whole.targets}
    wanted = tuple(required)
    gaps: list[Gap] = []
    for user in (*groups.wholes, *groups.parts):
        needed = [package for package in groups.dependencies(user) if package.targets]
        gaps += [gap for package in needed for gap in _gaps(package, user.targets, user.name)]
    for whole in groups.wholes:
        gaps += _gaps(whole, wanted, "the list of required targets") if whole.name in carrying or not carrying else []
    absent = {name for package in packages for name in package.requires} - {package.name for package in packages}
    common = largest_coherent_set(packages).ids
    names = tuple(whole.name for whole in groups.wholes)
    core = groups.needed or [whole for whole in groups.wholes if whole.targets]
    in_core = _common(core)
    named = ", ".join(whole.name for whole in core) if len(core) == 1 else "every package that others need"
    leaves = [gap for leaf in groups.wholes if leaf.targets and leaf not in core for gap in _gaps(leaf, in_core, named)]
    return CoherenceReport(
        names,
        common,
        tuple(gaps),
        bool(carrying),
        tuple(sorted(absent)),
        tuple(unusable),
        tuple(leaves),
        not in_core,
        tuple(misdeclared),
    )


def largest_coherent_set(packages: Sequence[PackageTargets]) -> TargetSet:
    """Return the largest set of targets that every package with device code serves.

    All IDs of a processor have the same features. If only some packages distinguish the settings of a feature, the set
    lists these settings separately.
    """
    return _common(whole for whole in _Groups(packages).wholes if whole.targets)


def _common(wholes: Iterable[PackageTargets]) -> TargetSet:
    """Return the targets that all given packages serve."""
    loaded = [whole.targets for whole in wholes]
    processors = {target.processor for targets in loaded for target in targets}
    return TargetSet.of(target for processor in processors for target in _common_settings(TargetId(processor), loaded))


def _common_settings(processor: TargetId, loaded: Sequence[Sequence[TargetId]]) -> list[TargetId]:
    """Return the settings of a processor that every entry in ``loaded`` serves, with as few features as possible."""
    finest = _served(settings_of(processor, FEATURES), loaded)
    choices = (_served(settings_of(processor, features), loaded) for features in _FEATURE_CHOICES)
    return next(choice for choice in choices if all(covers(choice, target) for target in finest))


def _served(targets: Iterable[TargetId], loaded: Sequence[Sequence[TargetId]]) -> list[TargetId]:
    return [target for target in targets if all(covers(carried, target) for carried in loaded)]


def _gaps(package: PackageTargets, wanted: Iterable[TargetId], wanted_by: str) -> list[Gap]:
    missing = [target for target in wanted if not covers(package.targets, target)]
    return [Gap(package.name, target, wanted_by, package.targets) for target in missing]


class _Groups:
    """Packages grouped with the packages that complete them. The code of a group counts as a single package's code."""

    def __init__(self, packages: Sequence[PackageTargets]) -> None:
        self._by_name = {package.name: package for package in packages}
        if len(self._by_name) < len(packages):
            twice = next(c.name for i, c in enumerate(packages) if c.name in {d.name for d in packages[:i]})
            raise InputError(twice, "is given twice with different contents", expected="each package only once")
        self._roots = {name: self._root(name) for name in self._by_name}
        self.parts = [package for package in packages if self._roots[package.name] != package.name]
        self.wholes = [
            msgspec.structs.replace(package, targets=self._code(package.name, frozenset()))
            for package in packages
            if self._roots[package.name] == package.name
        ]

    @property
    def needed(self) -> list[PackageTargets]:
        """The packages with device code that another package with device code needs."""
        users = [whole for whole in (*self.wholes, *self.parts) if whole.targets]
        names = {
            self._roots.get(name) for user in users for name in user.requires if self._roots.get(name) != user.name
        }
        return [whole for whole in self.wholes if whole.targets and whole.name in names]

    def dependencies(self, package: PackageTargets) -> list[PackageTargets]:
        """Return the other packages that a package needs.

        For each of these packages, return the parts that are needed by name, or all parts if no part is needed by name.
        """
        own = self._roots[package.name]
        needed: dict[str, list[str]] = {}
        for name in package.requires:
            if self._roots.get(name, own) != own:
                needed.setdefault(self._roots[name], []).append(name)
        return [
            PackageTargets(names[0] if len(names) == 1 else root, self._code(root, frozenset(names)))
            for root, names in needed.items()
        ]

    def _root(self, name: str) -> str:
        passed = [name]
        while (whole := self._by_name[passed[-1]].part_of) in self._by_name:
            if whole in passed:
                raise InputError(
                    name,
                    f"completes {passed[-1]}, which in turn completes {whole}",
                    expected="a package that completes another package",
                )
            passed.append(whole)
        return passed[-1]

    def _code(self, name: str, needed: frozenset[str]) -> tuple[TargetId, ...]:
        parts = [package.name for package in self._by_name.values() if package.part_of == name]
        chosen = [part for part in parts if part in needed] or parts
        targets = {target for part in chosen for target in self._code(part, needed)}
        carried = targets.union(self._by_name[name].targets)
        return tuple(sorted(without_lost(carried, self._by_name[name].lost), key=id_sort_key))


class WheelFacts(msgspec.Struct, frozen=True):
    """The data of a wheel, or of the sdist that selects wheels, for the coherence check."""

    path: str
    name: str
    """The normalized name of the distribution."""
    requirements: tuple[str, ...]
    """In the format that `read_requirements` reads."""
    targets: tuple[TargetId, ...]
    roots: frozenset[str]
    """The top-level folders of the wheel, without ``.dist-info`` and ``.data``."""
    version: str = ""
    """The version. Empty if all packages have the same version, as in a build."""
    alternatives: frozenset[str] = frozenset()
    """Names of packages. The sdist installs only the packages for the machine's GPUs.

    Their code counts as one package's code.
    """
    code: tuple[FileCode, ...] = ()
    """The wheel's files with device code, and its files that open a folder of kernels."""
    places: tuple[str, ...] = ()
    """The installed paths of the wheel's files."""

    @property
    def is_divided(self) -> bool:
        """Whether device packages provide the wheel's kernels."""
        return is_divided(self.name, self.requirements)


def read_requirements(path: str, texts: Iterable[str]) -> list[Requirement]:
    """Return a package's requirements. Raises `InputError` with its ``path`` for an unreadable requirement."""
    try:
        return [parse_requirement(text) for text in texts]
    except RequirementError as e:
        raise InputError(path, f"has {e}") from e


def wheel_package_targets(wheels: Sequence[WheelFacts]) -> list[PackageTargets]:
    """Return the input for `check_coherence`: each wheel with its direct and indirect requirements.

    A wheel that completes another wheel is named for all GPUs that it has code for, such as ``rocm-sdk-device-gfx906``.
    It also requires the other wheel, which must have all of its top-level folders. Packages can also share a folder
    without completing each other.

    Wheels of one package with the same targets, such as wheels for several Python versions, are treated as one wheel
    with all of their requirements. Raises `InputError` for wheels of one package that have different code or different
    versions.
    """
    by_name = {wheel.name: wheel for wheel in wheels}
    raise_all("wheels", [*filter(None, (_difference(by_name[wheel.name], wheel) for wheel in wheels))])
    ordered = sorted(wheels, key=lambda wheel: list(by_name).index(wheel.name))
    return [_package_targets(list(group), by_name) for _, group in groupby(ordered, attrgetter("name"))]


def _difference(one: WheelFacts, other: WheelFacts) -> InputError | None:
    """Return an error if two wheels of one package differ."""
    if (one.version, one.targets) == (other.version, other.targets):
        return None
    if one.version != other.version:
        found = f"is version {other.version} of {other.name}, but {one.path} is version {one.version}"
        return InputError(other.path, found, expected="one version of each package")
    carried, others = (", ".join(map(str, wheel.targets)) or "no device code" for wheel in (other, one))
    found = f"has {carried}, but {one.path} from the same package has {others}"
    return InputError(other.path, found, expected="the same targets in all wheels for a package")


def _package_targets(wheels: list[WheelFacts], by_name: dict[str, WheelFacts]) -> PackageTargets:
    first = wheels[0]
    needed = {name for wheel in wheels for name in _needed(wheel, by_name)}
    return PackageTargets(first.name, first.targets, tuple(sorted(needed)), _completed_by(first, by_name))


def _needed(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> set[str]:
    """Return the names of all packages that a wheel needs, including indirect requirements and extras.

    If the needed version of a package differs from the given version, its name includes the needed version.
    """

    def brought_by(name: str, extra: str) -> Iterator[tuple[str, str]]:
        source = wheel if name == wheel.name else by_name.get(name)
        for requirement in _requirements(source, extra, wheel.path) if source else ():
            named = _name_of(requirement, by_name)
            yield from ((named, asked) for _, asked in asked_for(requirement))

    return {*follow_requirements(wheel.name, brought_by)} - {wheel.name}


def _name_of(requirement: Requirement, by_name: dict[str, WheelFacts]) -> str:
    name = canonicalize_name(requirement.name)
    version = by_name[name].version if name in by_name else ""
    try:
        met = not version or requirement.specifier.contains(version, prereleases=True)
    except ValueError:  # an error in the wheel's requirements, or a version that can't be compared
        met = True
    return name if met else f"{name}{requirement.specifier}"


def _requirements(wheel: WheelFacts, extra: str, path: str) -> list[Requirement]:
    """Return a wheel's requirements with an extra, on any system where the wheel ``path`` can be installed.

    An empty ``extra`` means no extra. With an extra, these are only the requirements that the extra adds.
    """
    if len(requirements_for_extra(wheel.requirements, "")) < len(wheel.requirements):
        read_requirements(wheel.path, wheel.requirements)  # raises the error about the unreadable requirement
    found = requirements_for_extra(wheel.requirements, extra)
    return [requirement for requirement in found if applies(requirement, (extra,), path)]


def _completed_by(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> str:
    chooser = next((other.name for other in by_name.values() if wheel.name in other.alternatives), "")
    if chooser or not _is_named_for_its_gpus(wheel):
        return chooser
    names = {canonicalize_name(requirement.name) for requirement in _requirements(wheel, "", wheel.path)}
    owners = [by_name[name] for name in sorted(names) if name in by_name and not _is_named_for_its_gpus(by_name[name])]
    return next((owner.name for owner in owners if wheel.roots and wheel.roots <= owner.roots), "")


def _is_named_for_its_gpus(wheel: WheelFacts) -> bool:
    """Return whether a wheel's name contains, between dashes, each of its targets or the target's family.

    Code for a generic target can also be in the package for one of its members, if that package has no other code. If a
    target shares another target's package, its code is in that package.
    """
    catalog = load_catalog()
    members = {generic.name: generic.members for generic in catalog.generics}
    names = [target.processor for target in wheel.targets]
    groups = [(*families_of(name), *members.get(name, ()), catalog.package_of(name)) for name in names]
    return bool(groups) and all(any(f"-{word.lower()}-" in f"-{wheel.name}-" for word in words) for words in groups)
