"""Which Debian packages need which, for comparing their GPU targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.from_deb import architecture_problems
from rocwheel.artifacts.import_table import ImportRules, load_table
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.installed.coherence.check import Carrier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.artifacts.deb import Choice
    from rocwheel.installed.coherence.deb_facts import DebFacts

__all__ = ["deb_carriers"]


def deb_carriers(packages: Sequence[DebFacts]) -> list[Carrier]:
    """Return what `check_coherence` compares: each package with all it needs, directly or through others of them.

    What is not among ``packages`` is named only if it is ROCm's. Raises `InputError`, or `ProblemsError` for several,
    for two versions of one package, and for packages of another architecture than most.
    """
    by_name = {package.name: package for package in packages}
    foreign = architecture_problems((package.path, package.architecture) for package in packages)
    doubles = (problem for package in packages if (problem := _double(package, by_name[package.name])))
    raise_all("the packages", [*foreign, *doubles])
    relations = _Relations(packages)
    return [Carrier(name, package.targets, relations.needed(package)) for name, package in by_name.items()]


def _double(package: DebFacts, other: DebFacts) -> InputError | None:
    """Return the error when two packages of one name differ."""
    if (other.version, other.targets) == (package.version, package.targets):
        return None
    found = f"is version {package.version} of {package.name}, but {other.path} is version {other.version}"
    return InputError(package.path, found, expected="one version of each package")


class _Relations:
    """The relations among the packages that were given."""

    def __init__(self, packages: Sequence[DebFacts]) -> None:
        self._packages = packages
        self._names = {package.name for package in packages}
        self._rules = ImportRules(load_table("debian.toml"))

    def needed(self, package: DebFacts) -> tuple[str, ...]:
        """Return the names of all packages that one needs, and the relations that none of the given ones satisfies."""
        found: dict[str, None] = {}
        left = [package]
        while left:
            for choice in left.pop().depends:
                satisfying = [p for p in self._packages if choice.is_met_by(p.name, p.version, p.provides)]
                left += [other for other in satisfying if other.name not in found]
                found |= dict.fromkeys(other.name for other in satisfying)
                found |= {} if satisfying else dict.fromkeys(self._missing(choice))
        return tuple(sorted(found.keys() - {package.name}))

    def _missing(self, choice: Choice) -> Iterator[str]:
        """Yield a relation that no given package satisfies, if it is for ROCm's or for one given in another version."""
        if any(one.package in self._names or self._rules.is_of_rocm(one.package) for one in choice.relations):
            yield str(choice)
