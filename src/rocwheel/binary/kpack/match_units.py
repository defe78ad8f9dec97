"""The translation unit that a code object belongs to, by the names of its kernels: the keys of archives may be wrong.

AMD's tool of mid-2026 counts units in each archive, and passes over those that lack its target; wrappers count all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

__all__ = ["match_units"]

Unit = TypeVar("Unit", bound="Hashable")


def match_units(
    kernels: Mapping[Unit, frozenset[str]], reference: Mapping[Unit, frozenset[str]]
) -> dict[Unit, Unit] | None:
    """Return the unit that each code object really is of, by the one that it is stored as; none if that is not clear.

    ``kernels`` are the names of the kernels in each, ``reference`` those of all units, for a target that lacks none. It
    is not clear where two units have the same kernels, or a code object has those of no unit.
    """
    units: dict[frozenset[str], Unit] = {}
    for unit, names in reference.items():
        if names in units:
            return None
        units[names] = unit
    if not kernels or any(names not in units for names in kernels.values()):
        return None
    return {unit: units[names] for unit, names in kernels.items()}
