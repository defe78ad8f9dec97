"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]

_USUAL = 100


def examples(number: int) -> int:
    """Return how many examples to try where ``number`` is right for each run: twenty times as many in a deep one."""
    return number * settings().max_examples // _USUAL
