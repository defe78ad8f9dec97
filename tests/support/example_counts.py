"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]

_USUAL = 100
"""What Hypothesis tries by itself."""


def examples(number: int) -> int:
    """Return how many examples to try of a property: half of ``number``, or ten times as many in a deep run."""
    return max(1, number * settings().max_examples // _USUAL)
