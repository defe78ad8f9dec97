"""Numbers in messages: a count with its noun, and the first few of many names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["count", "first_of"]


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun, such as ``1 change`` and ``2 changes``; ``plural`` is for other endings than "s".

    >>> count(0, "change"), count(1, "entry", "entries")
    ('0 changes', '1 entry')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_of(texts: Sequence[str], most: int = 3, *, more: str = " and {} more") -> str:
    """Return the first ``most`` of ``texts`` as one line, and how many more there are, worded as ``more`` has it."""
    rest = more.format(len(texts) - most) if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest
