"""Taking code for some targets out of bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.device_error import DeviceCodeError
from rocwheel.binary.target_id import BundleEntryId, TargetId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.device_error import Place
    from rocwheel.binary.offload_bundle import BundlePart

__all__ = ["Prune", "is_kept", "overlaps"]


def overlaps(one: TargetId, other: TargetId) -> bool:
    """Tell whether some GPU falls under both: equal processors, and no feature that is on in one and off in the other.

    So ``gfx90a`` stands for all of its variants, and ``gfx90a:xnack+`` for code that leaves xnack open, too.
    """
    return one.processor == other.processor and all(
        setting == other.features.get(name, setting) for name, setting in one.features.items()
    )


def is_kept(target: TargetId, keep: Iterable[TargetId]) -> bool:
    """Tell whether code for ``target`` stays when code for ``keep`` is wanted."""
    return any(overlaps(target, wanted) for wanted in keep)


class Prune(msgspec.Struct, frozen=True):
    """Keeps the host entries and the code for ``keep``; entries without any code go as well.

    Raises `DeviceCodeError` when no device code would be left, unless ``allow_empty``: an older runtime that finds a
    bundle without code for a GPU gives up on every GPU of the machine.
    """

    keep: tuple[TargetId, ...]
    allow_empty: bool = False

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries that stay."""
        kept = tuple(part for part in parts if self._stays(part))
        if len(kept) == len(parts):
            return parts
        if not self.allow_empty and not any(part.size for part in kept):
            raise DeviceCodeError(
                place,
                "has no code for any target to keep",
                expected=f"code for one of {', '.join(map(str, self.keep))}",
                remedy=f"It has code for {', '.join(part.spelling.split('-', 5)[-1] for part in parts if part.size)}.",
            )
        return kept

    def _stays(self, part: BundlePart) -> bool:
        target = BundleEntryId.parse(part.spelling).target
        return target is None or (part.size > 0 and is_kept(target, self.keep))
