"""Dividing sizes: parts that add up to the whole, to the byte."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["divide"]


def divide(whole: int, weights: Sequence[int]) -> list[int]:
    """Return ``whole`` divided in proportion to the weights; the parts add up to it, each within one of its share.

    Weights of nothing but zeros count as equal. Without weights there are no parts.
    """
    total = sum(weights)
    if not total:
        weights, total = [1] * len(weights), len(weights)
    ends, seen = [0], 0
    for weight in weights:
        seen += weight
        ends.append(whole * seen // total)
    return [stop - start for start, stop in itertools.pairwise(ends)]
