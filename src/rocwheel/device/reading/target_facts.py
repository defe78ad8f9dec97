"""What the device code of a file comes to for each target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.device.reading.device_facts import DeviceFacts, EntryFacts

__all__ = ["TargetFacts", "add_up_targets", "summarize_targets"]


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The code for one target over all bundles of a file; ``missing`` counts the bundles without any for it."""

    target: str
    bundles: int
    missing: int
    size: int
    stored_size: int | None
    kernels: int | None


def summarize_targets(facts: DeviceFacts) -> tuple[TargetFacts, ...]:
    """Return the sum of the code for each target, sorted by name; targets with code in all bundles miss none."""
    groups = facts.groups
    by_target: dict[str, list[tuple[int, EntryFacts]]] = defaultdict(list)
    for number, entries in enumerate(groups):
        for entry in entries:
            by_target[entry.target].append((number, entry))
    return tuple(_sum_up(target, found, len(groups)) for target, found in sorted(by_target.items()))


def add_up_targets(files: Iterable[DeviceFacts]) -> tuple[TargetFacts, ...]:
    """Return the sum of the code for each target over files, sorted by name, as `summarize_targets` does for one.

    Nothing is missing from a file, as each may be for one target.
    """
    by_target: dict[str, list[TargetFacts]] = defaultdict(list)
    for facts in files:
        for found in summarize_targets(facts):
            by_target[found.target].append(found)
    return tuple(
        TargetFacts(
            target=target,
            bundles=sum(one.bundles for one in found),
            missing=0,
            size=sum(one.size for one in found),
            stored_size=_sum_known(one.stored_size for one in found),
            kernels=_sum_known(one.kernels for one in found),
        )
        for target, found in sorted(by_target.items())
    )


def _sum_up(target: str, found: list[tuple[int, EntryFacts]], groups: int) -> TargetFacts:
    numbers = {number for number, _ in found}
    return TargetFacts(
        target=target,
        bundles=len(numbers),
        missing=groups - len(numbers),
        size=sum(entry.size for _, entry in found),
        stored_size=_sum_known(entry.stored_size for _, entry in found),
        kernels=_sum_known(entry.kernels for _, entry in found),
    )


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
