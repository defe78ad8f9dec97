"""Which archives a library gets: a group of units that exist for the same GPUs shares one archive for each target.

A reader that finds an archive for its GPU, but not the unit in it, gives up on every GPU of the machine; one that finds
no archive skips the GPU, as with a fat binary. So a unit that lacks a target must not name archives which others have
for it. And a reader may hold an archive in memory as a whole, or refuse it above 2 GiB: larger groups are parted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kpack.archive import ARCHIVE_LIMIT
from rocwheel.binary.kpack.write import assign_shards
from rocwheel.device.splitting.planning.keys import code_keys, named_features, served_settings
from rocwheel.device.splitting.planning.units import Unit
from rocwheel.targets.catalog.catalog import sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.code_objects import TargetId

__all__ = ["UnitGroup", "UnitKeys", "group_units"]


class UnitKeys(msgspec.Struct, frozen=True):
    """The keys under which the archive for a target lists one code object of a unit."""

    position: int
    """Which of the unit's entries it is."""
    keys: tuple[str, ...]


class UnitGroup(msgspec.Struct, frozen=True):
    """Units that exist for the same GPUs, in the order of their indices."""

    name: str
    units: tuple[Unit, ...]
    features: dict[str, frozenset[str]]
    """By base target, the features that some units name: kept, as each unit's keys depend on them."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The base targets that there is an archive for."""
        return tuple(self.features)

    def keys_of(self, unit: Unit, target: str) -> tuple[UnitKeys, ...]:
        """Return the code objects of ``unit`` in the archive for ``target``, each with its keys."""
        by_position: dict[int, list[str]] = defaultdict(list)
        for key, position in code_keys(unit.targets, target, self.features[target]).items():
            by_position[position].append(str(key))
        return tuple(UnitKeys(position, tuple(keys)) for position, keys in sorted(by_position.items()))

    def listed(self, target: str) -> tuple[str, ...]:
        """Return all keys of the archive for ``target``, each once, in order of their text."""
        features = self.features[target]
        return tuple(sorted({str(key) for unit in self.units for key in code_keys(unit.targets, target, features)}))


def group_units(units: Iterable[Unit], name: str, *, limit: int = ARCHIVE_LIMIT) -> tuple[UnitGroup, ...]:
    """Return the groups of a library's units; the largest is called ``name``, others ``name-part2`` and so on.

    No archive of a group gets more than ``limit`` bytes, even if its code does not compress. Raises `KpackError` for a
    unit that alone has more.
    """
    by_gpus: dict[frozenset[TargetId], list[Unit]] = defaultdict(list)
    for unit in units:
        by_gpus[served_settings(unit.targets)].append(unit)
    alike = sorted(by_gpus.values(), key=lambda group: (-len(group), group[0].index))
    parts = [part for group in alike for part in _parted(group, limit)]
    return tuple(
        UnitGroup(name if number == 1 else f"{name}-part{number}", tuple(part), _features(part))
        for number, part in enumerate(parts, 1)
    )


def _features(units: Iterable[Unit]) -> dict[str, frozenset[str]]:
    """Return the base targets of units in order, and of each the features that its targets name."""
    by_processor: dict[str, list[TargetId]] = defaultdict(list)
    for unit in units:
        for target in unit.targets:
            by_processor[target.processor].append(target)
    return {processor: named_features(by_processor[processor]) for processor in sorted(by_processor, key=sort_key)}


def _parted(units: Sequence[Unit], limit: int) -> list[list[Unit]]:
    shards = assign_shards([unit.reserved() for unit in units], limit=limit)
    parts: list[list[Unit]] = [[] for _ in range(max(shards, default=-1) + 1)]
    for unit, shard in zip(units, shards, strict=True):
        parts[shard].append(unit)
    return parts
