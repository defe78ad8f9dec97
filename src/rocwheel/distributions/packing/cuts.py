"""Where a large content is cut into the pieces that are packed apart from one another.

The cuts of a sequence, such as a tar, also follow from what is in it: where one of its members changes, the pieces
before it and most of those behind it are the same as before.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rocwheel.distributions.content.content import SequenceContent

if TYPE_CHECKING:
    from rocwheel.distributions.content.content import Content

__all__ = ["block_ranges", "piece_ranges"]


def block_ranges(size: int, block: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the blocks that ``size`` bytes are cut into."""
    return [(start, min(start + block, size)) for start in range(0, size, block)]


def piece_ranges(content: Content, piece: int) -> list[tuple[int, int]]:
    """Return the (start, stop) pairs of the pieces of a content, each of ``piece`` bytes at most.

    One that is no larger than a piece stays whole.
    """
    if content.size <= piece or not isinstance(content, SequenceContent):
        return block_ranges(content.size, piece)
    sections = pairwise([0, *content.joints, content.size])
    return [(start + at, start + end) for start, stop in sections for at, end in block_ranges(stop - start, piece)]
