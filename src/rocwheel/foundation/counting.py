"""Numbers with their noun."""

from __future__ import annotations

__all__ = ["count"]


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, such as ``1 change`` and ``2 changes``; ``plural`` is for other endings than "s".

    >>> count(0, "change"), count(1, "entry", "entries")
    ('0 changes', '1 entry')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
