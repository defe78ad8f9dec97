"""Taking code out of bundles so that none is left without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.device.editing.prune import Prune

if TYPE_CHECKING:
    from rocwheel.binary.bundles.plain import BundlePart
    from rocwheel.binary.code_objects import Place

__all__ = ["PruneToSome"]


class PruneToSome(msgspec.Struct, frozen=True):
    """Keeps the code that GPUs of ``keep`` need; of a bundle without any, the smallest code object.

    No GPU runs that. But nobody knows of every runtime what it makes of a bundle without device code.
    """

    keep: tuple[TargetId, ...]

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries that stay."""
        kept = Prune(self.keep, allow_empty=True)(parts, place=place)
        if any(part.target and part.size for part in kept):
            return kept
        smallest = min((part for part in parts if part.target and part.size), key=lambda part: part.size, default=None)
        if smallest is None or len(parts) == len(kept) + 1:
            return parts
        return tuple(part for part in parts if part.target is None or part is smallest)
