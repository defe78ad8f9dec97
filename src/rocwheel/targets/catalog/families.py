"""Families of GPU targets: TheRock's names (``gfx94X-dcgpu``), and each target as its own family (``gfx942``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import processor_of
from rocwheel.core.workers import convert_all
from rocwheel.targets.catalog.catalog import load_catalog, sort_key
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_family", "expand_families", "families_of", "is_family", "is_target", "targets_of"]

_OF_AMD = "gfx"


def is_family(name: str) -> bool:
    """Return whether ``name`` is one of TheRock's families, such as ``gfx94X-dcgpu``."""
    return name in load_catalog().family_targets


def is_target(name: str) -> bool:
    """Return whether ``name`` is a known processor, specific or generic, whatever features follow it."""
    return processor_of(name) in load_catalog().processors


def targets_of(name: str, *, source: str = "GPU family") -> tuple[str, ...]:
    """Return the targets of the family ``name``; a target is its own family.

    Raises `UnknownTargetError`, led by ``source``, with the nearest names.
    """
    catalog = load_catalog()
    if name in catalog.family_targets:
        return catalog.family_targets[name]
    if is_target(name):
        return (name,)
    known = (*catalog.processors, *catalog.family_targets)
    raise UnknownTargetError(name, known, source=source, what="GPU target or family")


def check_family(name: str, *, source: str) -> None:
    """Raise `UnknownTargetError`, led by ``source``, for a name of AMD's kind that is no known family or target.

    A build may have families of its own, whose names don't begin with ``gfx``.
    """
    if name.startswith(_OF_AMD):
        targets_of(name, source=source)


def expand_families(names: Iterable[str], *, source: str = "GPU targets") -> tuple[str, ...]:
    """Return the targets of all ``names``, families or targets, each once and in canonical order.

    Raises the `UnknownTargetError` of an unknown name, or one `ProblemsError` for several.
    """
    groups = convert_all(source, partial(targets_of, source=source), names)
    targets = {target for group in groups for target in group}
    return tuple(sorted(targets, key=lambda target: (sort_key(processor_of(target)), target)))


def families_of(target: str) -> tuple[str, ...]:
    """Return the families that hold the processor of ``target``: the processor itself, then the smallest first."""
    processor = processor_of(target)
    holding = [family for family in load_catalog().families if processor in family.targets]
    return (processor, *(family.name for family in sorted(holding, key=lambda f: (len(f.targets), f.name))))
