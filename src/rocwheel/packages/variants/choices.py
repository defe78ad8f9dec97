"""Which packages a GPU needs, among those that exist for each GPU under one name: the labels of wheel variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.packages.variants.gpu_package import GpuPackage, classify_word
from rocwheel.targets.catalog.catalog import sort_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Choice", "make_choices"]

_RANKS = {"target": 0, "generic": 2, "family": 3, "shared": 4}


class Choice(msgspec.Struct, frozen=True):
    """A variant: for GPUs of these ``targets``, these packages."""

    label: str
    targets: tuple[str, ...]
    packages: tuple[GpuPackage, ...]
    """First the package that the variant is named for, then packages with files that several targets share."""


def make_choices(packages: Sequence[GpuPackage]) -> list[Choice]:
    """Return the variants of packages that differ by their GPU alone, in canonical order of targets.

    Each target gets the package whose code suits it best: its own, one with code relabelled for it, generic code for
    the fewest processors, and the smallest family, in this order. It gets the packages for kernels that it shares with
    other targets besides. Targets that get the same are one variant.
    """
    by_target: dict[str, tuple[GpuPackage, ...]] = {}
    for target in sorted({target for package in packages for target in package.targets}, key=sort_key):
        serving = [package for package in packages if target in package.targets]
        shared = [package for package in serving if classify_word(package.word)[0] == "shared"]
        others = sorted((package for package in serving if package not in shared), key=lambda one: _rank(one, target))
        by_target[target] = (*others[:1], *sorted(shared, key=lambda one: one.word))
    grouped: dict[tuple[GpuPackage, ...], list[str]] = {}
    for target, needed in by_target.items():
        grouped.setdefault(needed, []).append(target)
    labels = _make_labels(grouped)
    return [Choice(labels[needed], tuple(targets), needed) for needed, targets in grouped.items()]


def _rank(package: GpuPackage, target: str) -> tuple[int, int, str]:
    kind, name = classify_word(package.word)
    relabelled = kind == "target" and name != target
    return (1 if relabelled else _RANKS[kind]), len(package.targets), package.word


def _make_labels(grouped: Mapping[tuple[GpuPackage, ...], Sequence[str]]) -> dict[tuple[GpuPackage, ...], str]:
    """Return the label of each variant: what its first package is named for, and a target where that is not enough."""
    labels: dict[tuple[GpuPackage, ...], str] = {}
    for needed, targets in grouped.items():
        word = needed[0].word.replace("-", "_")
        labels[needed] = word if word not in labels.values() else f"{word}_{targets[0]}"
    return labels
