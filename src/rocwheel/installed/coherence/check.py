"""Whether packages that use one another carry code for the same GPUs.

The rule is that of Gentoo's rocm.eclass (``ROCM_REQUIRED_USE`` and ``ROCM_USEDEP``): at least one target is enabled,
and each target that a package carries is carried by each of its dependencies. A dependency without device code, such as
a compiler or headers, limits nothing; packages that all have none are coherent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.installed.library_code import CodeGap, Reach, without_lost
from rocwheel.targets.compatibility import covers, settings_of
from rocwheel.targets.declaration import RecordedCoherence
from rocwheel.targets.spelling.target_set import TargetSet, id_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Carrier", "CoherenceReport", "Gap", "Misdeclared", "check_coherence", "largest_coherent_set"]

_FEATURE_CHOICES = ((), *((feature,) for feature in FEATURES), FEATURES)


class Carrier(msgspec.Struct, frozen=True):
    """A package, the targets its binaries carry, and the names of the packages it needs."""

    name: str
    targets: tuple[TargetId, ...] = ()
    requires: tuple[str, ...] = ()
    part_of: str = ""
    """The package that this one completes, as kernels for one GPU complete host libraries; its code counts there."""
    lost: tuple[TargetId, ...] = ()
    """Targets for which one of its libraries finds no code, whatever the others carry."""


class Gap(msgspec.Struct, frozen=True):
    """A target that ``package`` lacks, although ``wanted_by`` (a package, or the list of required targets) has it."""

    package: str
    target: TargetId
    wanted_by: str
    carried: tuple[TargetId, ...]

    def __str__(self) -> str:
        carried = ", ".join(map(str, self.carried)) or "no device code"
        return f"{self.package} lacks {self.target}, which {self.wanted_by} asks for; it carries {carried}"


class Misdeclared(msgspec.Struct, frozen=True):
    """A package whose control file declares other processors than its binaries carry; ``field`` declares them."""

    package: str
    field: str
    declared: tuple[TargetId, ...]
    carried: tuple[TargetId, ...]
    holders: tuple[tuple[TargetId, str], ...]
    """What is carried and not declared, each with the file that holds it."""

    @property
    def absent(self) -> tuple[TargetId, ...]:
        """What is declared and not carried."""
        found = {target.processor for target in self.carried}
        return tuple(target for target in self.declared if target.processor not in found)

    def __str__(self) -> str:
        declared, carried, absent = (", ".join(map(str, ids)) for ids in (self.declared, self.carried, self.absent))
        found = [f"{target} is in {holder}, and not declared" for target, holder in self.holders]
        found += [f"no file carries {absent}"] if absent else []
        lead = f"{self.package} declares {declared} in {self.field}, and carries {carried}"
        return shortened(f"{lead}: {'; '.join(found)}")


class CoherenceReport(msgspec.Struct, frozen=True):
    """What `check_coherence` found."""

    packages: tuple[str, ...]
    common: tuple[TargetId, ...]
    """The targets that every package with device code serves."""
    gaps: tuple[Gap, ...]
    has_device_code: bool
    """Whether any of the packages has device code."""
    absent: tuple[str, ...] = ()
    """Packages that are needed but were not given, so that their code was not compared."""
    unusable: tuple[CodeGap, ...] = ()
    """What libraries carry and find no code for."""
    leaves: tuple[Gap, ...] = ()
    """Targets that packages which nobody needs lack, although those that others need all serve them."""
    is_divided: bool = False
    misdeclared: tuple[Misdeclared, ...] = ()

    @property
    def divided(self) -> bool:
        """Whether no target is served by every package with device code that another one needs.

        Where none needs another, all count.
        """
        return self.has_device_code and self.is_divided

    @property
    def recorded(self) -> RecordedCoherence:
        """What a wheel that is built records of it."""
        return RecordedCoherence(self.packages, tuple(map(str, self.common)), tuple(map(str, self.gaps)))

    @property
    def coherent(self) -> bool:
        """Whether each package serves what it declares and its users carry, and all that are needed share a target."""
        fails = any(gap.reach is Reach.FAILS for gap in self.unusable)
        return not self.gaps and not fails and not self.divided and not self.misdeclared


def check_coherence(
    carriers: Sequence[Carrier],
    required: Iterable[TargetId] = (),
    unusable: Sequence[CodeGap] = (),
    misdeclared: Iterable[Misdeclared] = (),
) -> CoherenceReport:
    """Compare each package with its dependencies, and each that has device code with ``required``.

    When none has device code, each of them lacks what is required. A dependency that is not given is only named. What
    is ``unusable`` doesn't count as served. Raises `InputError` for a package that is given twice.
    """
    lost: dict[str, list[TargetId]] = {}
    for gap in unusable:
        lost.setdefault(gap.file.package, []).extend(gap.targets if gap.is_lost else ())
    carriers = [msgspec.structs.replace(one, lost=tuple(lost.get(one.name, ()))) for one in carriers]
    groups = _Groups(carriers)
    carrying = {carrier.name for carrier in carriers if carrier.targets}  # what is lost included
    carrying |= {whole.name for whole in groups.wholes if whole.targets}
    wanted = tuple(required)
    gaps: list[Gap] = []
    for carrier in (*groups.wholes, *groups.parts):
        needed = [package for package in groups.dependencies(carrier) if package.targets]
        gaps += [gap for package in needed for gap in _gaps(package, carrier.targets, carrier.name)]
    for whole in groups.wholes:
        gaps += _gaps(whole, wanted, "the list of required targets") if whole.name in carrying or not carrying else []
    absent = {name for carrier in carriers for name in carrier.requires} - {carrier.name for carrier in carriers}
    common = largest_coherent_set(carriers).ids
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


def largest_coherent_set(carriers: Sequence[Carrier]) -> TargetSet:
    """Return the targets that every package with device code serves: the set that all could be reduced to.

    A set names the same features in each id of a processor; settings that only some packages distinguish are split.
    """
    return _common(whole for whole in _Groups(carriers).wholes if whole.targets)


def _common(wholes: Iterable[Carrier]) -> TargetSet:
    """Return the targets that each of some packages serves."""
    loaded = [whole.targets for whole in wholes]
    processors = {target.processor for targets in loaded for target in targets}
    return TargetSet.of(target for processor in processors for target in _common_settings(TargetId(processor), loaded))


def _common_settings(processor: TargetId, loaded: Sequence[Sequence[TargetId]]) -> list[TargetId]:
    """Return what every one of ``loaded`` serves of a processor, naming as few features as describe it fully."""
    finest = _served(settings_of(processor, FEATURES), loaded)
    choices = (_served(settings_of(processor, features), loaded) for features in _FEATURE_CHOICES)
    return next(choice for choice in choices if all(covers(choice, target) for target in finest))


def _served(targets: Iterable[TargetId], loaded: Sequence[Sequence[TargetId]]) -> list[TargetId]:
    return [target for target in targets if all(covers(carried, target) for carried in loaded)]


def _gaps(package: Carrier, wanted: Iterable[TargetId], wanted_by: str) -> list[Gap]:
    missing = [target for target in wanted if not covers(package.targets, target)]
    return [Gap(package.name, target, wanted_by, package.targets) for target in missing]


class _Groups:
    """Packages with those that complete them, whose code counts as theirs."""

    def __init__(self, carriers: Sequence[Carrier]) -> None:
        self._by_name = {carrier.name: carrier for carrier in carriers}
        if len(self._by_name) < len(carriers):
            twice = next(c.name for i, c in enumerate(carriers) if c.name in {d.name for d in carriers[:i]})
            raise InputError(twice, "is given twice, with different contents", expected="each package once")
        self._roots = {name: self._root(name) for name in self._by_name}
        self.parts = [carrier for carrier in carriers if self._roots[carrier.name] != carrier.name]
        self.wholes = [
            msgspec.structs.replace(carrier, targets=self._code(carrier.name, frozenset()))
            for carrier in carriers
            if self._roots[carrier.name] == carrier.name
        ]

    @property
    def needed(self) -> list[Carrier]:
        """The packages with device code that another one with device code needs."""
        users = [whole for whole in (*self.wholes, *self.parts) if whole.targets]
        names = {
            self._roots.get(name) for user in users for name in user.requires if self._roots.get(name) != user.name
        }
        return [whole for whole in self.wholes if whole.targets and whole.name in names]

    def dependencies(self, carrier: Carrier) -> list[Carrier]:
        """Return the other packages that a package needs: of each, the parts needed by name, or else all."""
        own = self._roots[carrier.name]
        needed: dict[str, list[str]] = {}
        for name in carrier.requires:
            if self._roots.get(name, own) != own:
                needed.setdefault(self._roots[name], []).append(name)
        return [
            Carrier(names[0] if len(names) == 1 else root, self._code(root, frozenset(names)))
            for root, names in needed.items()
        ]

    def _root(self, name: str) -> str:
        passed = [name]
        while (whole := self._by_name[passed[-1]].part_of) in self._by_name:
            if whole in passed:
                raise InputError(name, f"and {passed[-1]} complete one another", expected="a part of a whole")
            passed.append(whole)
        return passed[-1]

    def _code(self, name: str, needed: frozenset[str]) -> tuple[TargetId, ...]:
        parts = [carrier.name for carrier in self._by_name.values() if carrier.part_of == name]
        chosen = [part for part in parts if part in needed] or parts
        targets = {target for part in chosen for target in self._code(part, needed)}
        carried = targets.union(self._by_name[name].targets)
        return tuple(sorted(without_lost(carried, self._by_name[name].lost), key=id_sort_key))
