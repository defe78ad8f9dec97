"""Which GPUs without a package of their own a package serves: by generic code, or by code relabelled for them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.families import is_target
from rocwheel.targets.catalog.owned_targets import owned_targets
from rocwheel.targets.compatibility import Fit, choose
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path, without_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.layout.placement import PlacedFile
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["find_served"]

_ARCHIVE = ".kpack"


def find_served(packages: Iterable[PlacedPackage], facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return, by the variant of each package for one target, the other targets whose GPUs run the code in it.

    Each of these is named once, for the package whose code suits it best: relabelled code before generic code, and
    generic code for fewer processors before that for more. Targets with a package of their own are left out. A target
    that shares the package of another one is with that, if it has code of its own there.
    """
    codes = {package.variant: _read_codes(package, facts) for package in packages if is_target(package.variant)}
    served: dict[str, tuple[str, ...]] = {}
    for target in owned_targets():
        offers = [(how.rank, -_breadth(variant), variant) for variant in codes if (how := _fit(codes[variant], target))]
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
    for path, file in package.placement.files.items():
        targets = targets_in_path(path) if is_kernel_file(path) and not path.endswith(_ARCHIVE) else ()
        if targets:
            named[without_targets(path)] += targets
        elif held := _targets_of(file, facts):
            codes.append(_Codes(held, named=False))
    return [*codes, *(_Codes(targets, named=True) for targets in named.values())]


def _targets_of(file: PlacedFile, facts: Facts) -> tuple[TargetId, ...]:
    texts = facts.targets.get(file.entry.source, ()) if file.entry.source else ()
    return tuple(parse_target_id(text, source=file.path) for text in texts)


def _fit(codes: Sequence[_Codes], target: str) -> Fit | None:
    """Return how the code that suits a target least does so; none where there is code that its GPUs don't run."""
    worst = min((code.fit(TargetId(target)) for code in codes), key=lambda how: how.rank, default=Fit.NONE)
    return worst if worst.rank >= Fit.GENERIC.rank else None


def _breadth(variant: str) -> int:
    """Return how many processors a generic target covers; 0 for a specific one."""
    return sum(variant in load_catalog().generics_of(target) for target in owned_targets())
