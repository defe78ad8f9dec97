"""Which target a kernel file or database is for, by its path and the table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path
from rocwheel.targets.kernel_files.patterns import compile_patterns
from rocwheel.targets.kernel_files.table import Family, Shared, load_table

if TYPE_CHECKING:
    from rocwheel.targets.kernel_files.patterns import PathPattern

__all__ = [
    "KernelFile",
    "classify_path",
    "find_family",
    "fixed_reason",
    "is_unknown_kernel_file",
    "processors_of_name",
    "shared_row",
]


class KernelFile(msgspec.Struct, frozen=True):
    """A file that belongs to the package of one target, or of a family of them."""

    target: str
    """A processor without features, ``gfx90a`` or ``gfx1250-strict``, or the name of a family, ``gfx12_0``."""
    rule: str
    """The name of the table's row."""


@cache
def _rules() -> tuple[tuple[str, str, tuple[PathPattern, ...]], ...]:
    return tuple((rule.name, rule.target, compile_patterns(rule.files)) for rule in load_table().rules)


@cache
def _shared() -> tuple[tuple[Shared, tuple[PathPattern, ...]], ...]:
    return tuple((row, compile_patterns(row.files)) for row in load_table().shared)


@cache
def _families() -> dict[str, Family]:
    return {spelling: family for family in load_table().families for spelling in (family.name, *family.spelled)}


def classify_path(path: str) -> KernelFile | None:
    """Return what a file with a relative path is for; None where no rule knows it: then it is for all GPUs.

    The path may begin anywhere above the library's folder. Both kinds of slashes separate segments.
    """
    path = path.replace("\\", "/")
    if "gfx" not in path:
        return None
    for name, target, patterns in _rules():
        for pattern in patterns:
            if match := pattern.match(path):
                return KernelFile(_base_target(target or match["target"]), name)
    return None


def _base_target(spelling: str) -> str:
    family = find_family(spelling)
    return family.name if family else spelling.replace("_strict", "-strict")


def find_family(name: str) -> Family | None:
    """Return the family of a name or of its spelling in files, such as ``gfx120x``; none for processors and others."""
    return _families().get(name)


def fixed_reason(kernels: KernelFile) -> str:
    """Return why a copy of a file under another target's name would not serve its GPUs; empty where it may."""
    return next((rule.fixed for rule in load_table().rules if rule.name == kernels.rule), "")


def shared_row(path: str) -> Shared | None:
    """Return the row of a kernel library's file that is for all GPUs; none for other files."""
    path = path.replace("\\", "/")
    return next((row for row, patterns in _shared() if any(pattern.match(path) for pattern in patterns)), None)


def is_unknown_kernel_file(path: str) -> bool:
    """Return whether a file is named like a kernel file and no row of the table knows it.

    Such a file stays in the host package; who splits or merges lists it.
    """
    return is_kernel_file(path) and classify_path(path) is None and shared_row(path) is None


def processors_of_name(path: str) -> frozenset[str]:
    """Return the processors that a kernel file is for by its name, whether a rule knows it or not; none for others."""
    found = classify_path(path)
    if found is not None:
        return frozenset((found.target,))
    if not is_unknown_kernel_file(path):
        return frozenset()
    return frozenset(target.processor for target in targets_in_path(path))
