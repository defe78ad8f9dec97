"""The new places of bundles that are moved together at the start of their section, each on a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.bundles.storage import BundleChange

__all__ = ["PAGE", "BundleMove", "pack_bundles", "page_end"]

PAGE: Final = 4096
"""What bundles are aligned to, and the smallest page of memory, in bytes."""


class BundleMove(msgspec.Struct, frozen=True):
    """File offsets of a bundle before and after, and the bundle as it is written there, in rising order."""

    old: int
    new: int
    content: tuple[Replacement, ...]


def pack_bundles(start: int, bundles: Sequence[Bundle], changes: Sequence[BundleChange]) -> tuple[BundleMove, ...]:
    """Put each bundle onto the next page of a section that begins at the file offset ``start``.

    Pages count from there. A bundle stays where it is where that would be behind it.
    """
    changed = {change.bundle.start: change for change in changes}
    moves = []
    position = 0
    for bundle in bundles:
        old, new = start + bundle.start, start + min(page_end(position), bundle.start)
        change = changed.get(bundle.start)
        content = change.placed(new) if change else (Replacement(new, new + bundle.size, source=old),)
        moves.append(BundleMove(old, new, content))
        position = content[-1].stop - start
    return tuple(moves)


def page_end(size: int) -> int:
    """Return a size with its last page filled."""
    return -(-size // PAGE) * PAGE
