"""What could be saved. All sizes are in bytes."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Action", "Saving", "Savings"]


class Action(str, enum.Enum):
    """What can be done to device code."""

    COMPRESS = "compress"
    SPLIT = "split"
    PRUNE = "prune"


class Saving(msgspec.Struct, frozen=True):
    """What everything takes now, and after an action: for one GPU, if it names a target.

    What it takes now is the same for all actions: the totals of the report. Packed sizes are those of wheels and sdists
    as a whole, and none where nothing is packed.
    """

    action: Action
    target: str
    size: int
    size_after: int
    packed: int | None
    packed_after: int | None


class Savings(msgspec.Struct, frozen=True):
    """What could be saved; ``measured`` of the bundles' bytes (``of``) were compressed to know it."""

    is_estimated: bool
    measured: int
    of: int
    rows: tuple[Saving, ...]
