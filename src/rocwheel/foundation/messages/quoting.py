"""Quotes, in messages, of texts from inputs, which may be of any length."""

from __future__ import annotations

__all__ = ["quoted", "shortened"]

_LONGEST = 200
_LONGEST_MESSAGE = 1000


def quoted(value: str | bytes) -> str:
    """Return the value as Python spells it; of a long one the beginning, and how long it is."""
    if len(value) <= _LONGEST:
        return repr(value)
    unit = "bytes" if isinstance(value, bytes) else "characters"
    return f"{value[:_LONGEST]!r}... ({len(value)} {unit})"


def shortened(message: str) -> str:
    """Return what a library says of such a value, which it may quote in full; of a long message the beginning."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}... ({len(message)} characters)"
