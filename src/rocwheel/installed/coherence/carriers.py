"""What wheels say and hold about GPU targets, and which of them complete which."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.installed.coherence.check import Carrier
from rocwheel.installed.library_code import CodeGap, CodeTree, FileCode
from rocwheel.linking.known.sdk_names import is_divided
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.families import families_of
from rocwheel.wheels.requirements import RequirementError, applies, asked_for, follow_requirements, parse_requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from packaging.requirements import Requirement

__all__ = ["WheelFacts", "carriers_of", "find_code_gaps", "read_requirements"]


class WheelFacts(msgspec.Struct, frozen=True):
    """What coherence needs of one wheel, or of the sdist that chooses wheels."""

    path: str
    name: str
    """The distribution's name, normalised."""
    requirements: tuple[str, ...]
    """As `read_requirements` reads them."""
    targets: tuple[TargetId, ...]
    roots: frozenset[str]
    """Its top-level directories, without ``.dist-info`` and ``.data``."""
    version: str = ""
    """Empty when all packages have the same version, as in a build."""
    alternatives: frozenset[str] = frozenset()
    """Names of packages of which it installs those for the machine's GPUs; their code counts as that of one package."""
    code: tuple[FileCode, ...] = ()
    """Its files with code, and those that open a folder of kernels."""
    places: tuple[str, ...] = ()
    """Where its files are installed."""

    @property
    def is_divided(self) -> bool:
        """Whether device packages bring its kernels."""
        return is_divided(self.name, self.requirements)


def read_requirements(path: str, texts: Iterable[str]) -> list[Requirement]:
    """Return the requirements of a package; raise `InputError`, led by its ``path``, for one that can't be read."""
    try:
        return [parse_requirement(text) for text in texts]
    except RequirementError as e:
        raise InputError(path, f"has {e}") from e


class _Packed(Protocol):
    """A package with its files."""

    @property
    def name(self) -> str: ...
    @property
    def code(self) -> tuple[FileCode, ...]: ...
    @property
    def places(self) -> tuple[str, ...]: ...
    @property
    def is_divided(self) -> bool: ...


def find_code_gaps(packages: Sequence[_Packed], unfinished: Collection[str] = ()) -> tuple[CodeGap, ...]:
    """Return what libraries carry and find no code for, once all packages are installed together.

    Of ``unfinished`` packages, some that bring their kernels may not be given.
    """
    files = {(package.name, file.place): file for package in packages for file in package.code}
    places = ((place, package.name) for package in packages for place in package.places)
    divided = {package.name for package in packages if package.is_divided}
    return CodeTree(files.values(), places, divided=divided, unfinished=unfinished).gaps()


def carriers_of(wheels: Sequence[WheelFacts]) -> list[Carrier]:
    """Return what `check_coherence` compares: each wheel with all it needs, directly or through others of ``wheels``.

    A wheel completes another one when it is named for the GPUs of all its code, such as ``rocm-sdk-device-gfx906``, and
    requires the other one, which has all its directories; packages may share a directory without being parts of one
    another. Wheels of one package that carry the same, such as those for several versions of Python, count once, with
    what any of them needs. Raises `InputError` for wheels of one package that carry different code or have different
    versions.
    """
    by_name = {wheel.name: wheel for wheel in wheels}
    raise_all("wheels", [_difference(by_name[wheel.name], wheel) for wheel in wheels if _differ(by_name, wheel)])
    ordered = sorted(wheels, key=lambda wheel: list(by_name).index(wheel.name))
    return [_carrier(list(group), by_name) for _, group in groupby(ordered, attrgetter("name"))]


def _differ(by_name: dict[str, WheelFacts], wheel: WheelFacts) -> bool:
    last = by_name[wheel.name]
    return (last.version, last.targets) != (wheel.version, wheel.targets)


def _difference(one: WheelFacts, other: WheelFacts) -> InputError:
    if one.version != other.version:
        found = f"is version {other.version} of {other.name}, but {one.path} is version {one.version}"
        return InputError(other.path, found, expected="one version of each package")
    carried, others = (", ".join(map(str, wheel.targets)) or "no device code" for wheel in (other, one))
    found = f"carries {carried}, but {one.path}, of the same package, carries {others}"
    return InputError(other.path, found, expected="the same targets in all wheels of a package")


def _carrier(wheels: list[WheelFacts], by_name: dict[str, WheelFacts]) -> Carrier:
    first = wheels[0]
    needed = {name for wheel in wheels for name in _needed(wheel, by_name)}
    return Carrier(first.name, first.targets, tuple(sorted(needed)), _completed_by(first, by_name))


def _needed(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> set[str]:
    """Return the names of all packages that a wheel needs, following requirements and extras through the given wheels.

    A package that is needed in another version than the given one is named with that version.
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
    except ValueError:  # it can't be compared
        met = True
    return name if met else f"{name}{requirement.specifier}"


def _requirements(wheel: WheelFacts, extra: str, path: str) -> list[Requirement]:
    """Return what a wheel needs with an extra, or none for ``""``, wherever the wheel ``path`` can be installed."""
    requirements = read_requirements(wheel.path, wheel.requirements)
    return [requirement for requirement in requirements if applies(requirement, (extra,), path)]


def _completed_by(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> str:
    chooser = next((other.name for other in by_name.values() if wheel.name in other.alternatives), "")
    if chooser or not _is_named_for_its_gpus(wheel):
        return chooser
    names = {canonicalize_name(requirement.name) for requirement in _requirements(wheel, "", wheel.path)}
    owners = [by_name[name] for name in sorted(names) if name in by_name and not _is_named_for_its_gpus(by_name[name])]
    return next((owner.name for owner in owners if wheel.roots and wheel.roots <= owner.roots), "")


def _is_named_for_its_gpus(wheel: WheelFacts) -> bool:
    """Return whether a wheel's name holds, between dashes, each target that it carries, or a family of it.

    Code for a generic target may also be there for one of its members, which has no other, and code for a target that
    shares the package of another one is in that.
    """
    catalog = load_catalog()
    members = {generic.name: generic.members for generic in catalog.generics}
    names = [target.processor for target in wheel.targets]
    groups = [(*families_of(name), *members.get(name, ()), catalog.package_of(name)) for name in names]
    return bool(groups) and all(any(f"-{word.lower()}-" in f"-{wheel.name}-" for word in words) for words in groups)
