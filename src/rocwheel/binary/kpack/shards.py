"""Which archive each host file's code goes into, so that none becomes too large."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kpack.archive import ARCHIVE_LIMIT
from rocwheel.binary.kpack.errors import KpackError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ENTRY_RESERVE", "assign_shards"]

ENTRY_RESERVE = 256
"""What an entry may take beside its code: its place in the table for three keys, padding and the size of its frame."""


def assign_shards(units: Sequence[Mapping[str, int]], *, limit: int = ARCHIVE_LIMIT) -> tuple[int, ...]:
    """Return the number of the archive that each of ``units`` goes into, counted from 0.

    A unit is what has to stay together, such as all code of a host file: by target, the bytes that it takes in the
    archive for that target, `ENTRY_RESERVE` for each code object included. The n-th archives of all targets belong
    together, so that one group's name stands for them. Units keep their order, and an archive is filled before the next
    begins. Raises `KpackError` for a unit that fits into no archive.
    """
    shards: list[int] = []
    filled: Counter[str] = Counter()
    for number, sizes in enumerate(units):
        for target, size in sizes.items():
            if size > limit:
                place, found = Place(f"unit {number}"), f"{size} bytes of code for {target}"
                raise KpackError(place, found, expected=f"at most {limit}, which fit into an archive")
        shard = shards[-1] if shards else 0
        if any(filled[target] + size > limit for target, size in sizes.items()):
            shard, filled = shard + 1, Counter()
        filled.update(sizes)
        shards.append(shard)
    return tuple(shards)
