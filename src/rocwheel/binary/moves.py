"""Where the bytes of a file are after some were put in or taken out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.patch import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Moves"]


class Moves(msgspec.Struct, frozen=True):
    """What moves: from which old file offset on, in rising order, and how much further back it then is.

    A step counts for all that follows, up to the next step. Where a step leads closer to the file's start than the one
    before it, the bytes right before its offset are gone.
    """

    steps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, changes: Iterable[tuple[int, int]]) -> Moves:
        """Return the moves by ``changes``: how many bytes are put in (or, negative, taken out) before which offset."""
        steps: list[tuple[int, int]] = []
        distance = 0
        for start, size in sorted(change for change in changes if change[1]):
            distance += size
            steps = [*(step for step in steps if step[0] != start), (start, distance)]
        return cls(tuple(steps))

    def offset(self, old: int) -> int:
        """Return the new file offset of what was at ``old``."""
        return old + next((by for start, by in reversed(self.steps) if old >= start), 0)

    def end(self, old: int) -> int:
        """Return the new file offset of the end of what ended at ``old``."""
        return self.offset(old - 1) + 1 if old else 0

    def iter_moved(self, old_size: int) -> Iterator[Replacement]:
        """Yield all that moves, in rising order; ``old_size`` is that of the old file."""
        last = self.steps[-1][1] if self.steps else 0
        for (start, by), (stop, next_by) in pairwise((*self.steps, (old_size, last))):
            new_stop = stop + min(by, next_by)
            if start + by < new_stop:
                yield Replacement(start + by, new_stop, source=start)
