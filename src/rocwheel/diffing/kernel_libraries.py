"""Kernel libraries, folders of files for a target each: for which GPUs they have no files any more."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.diffing.changes import KernelLibraryChange
from rocwheel.diffing.compare_items import lost_targets
from rocwheel.diffing.pair import plain_path
from rocwheel.targets.kernel_files.names import kernel_targets, library_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from rocwheel.diffing.values import Package

    Libraries: TypeAlias = Mapping[str, set[str]]

__all__ = ["find_lost_kernels"]

_ARCHIVE = ".kpack"


def find_lost_kernels(
    pairs: Sequence[tuple[Package | None, Package | None]],
) -> list[tuple[KernelLibraryChange, ...]]:
    """Return for each pair of packages the libraries of kernels that lost a GPU.

    Several packages may hold one library, as device packages do: one loses what none has any more. What a library that
    is new has files for has moved there.
    """
    before, after = (_merged(package for pair in pairs for package in pair[side : side + 1]) for side in (0, 1))
    fresh = {target for library, targets in after.items() if library not in before for target in targets}
    return [tuple(_lost(_merged([old]), after, fresh)) for old, _ in pairs]


def _lost(before: Libraries, after: Libraries, fresh: set[str]) -> Iterable[KernelLibraryChange]:
    for library, targets in sorted(before.items()):
        went, _ = lost_targets(targets, after.get(library, set()) | fresh)
        if went:
            yield KernelLibraryChange(library, went)


def _merged(packages: Iterable[Package | None]) -> Libraries:
    """Return the targets that each library has files for, in all packages."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for package in packages:
        for item in package.items if package else ():
            targets = kernel_targets(item.path)
            if targets and not item.path.endswith(_ARCHIVE):  # archives are compared by their content
                found[library_of(plain_path(item.path, package) if package else item.path)] |= targets
    return found
