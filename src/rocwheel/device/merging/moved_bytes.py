"""Whether two sections are the same, apart from words that are known to differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rocwheel.core.reading import iter_pieces

if TYPE_CHECKING:
    from rocwheel.core.reading import Data

__all__ = ["BehindWord", "is_same_but_moved"]

_BLOCK = 64


class BehindWord(Protocol):
    """Finds the word that may differ at a place."""

    def __call__(self, at: int, start: int) -> int | None:
        """Return what follows the word that begins at ``start`` or later and has the byte ``at``; None without one.

        All are offsets in the section.
        """


def is_same_but_moved(one: Data, other: Data, behind_word: BehindWord) -> bool:
    """Return whether all that differs between two sections of one size is words that ``behind_word`` accepts."""
    if len(one) != len(other):
        return False
    base = end = 0
    for mine, theirs in zip(iter_pieces(one), iter_pieces(other), strict=True):
        a, b = bytes(mine), bytes(theirs)
        while (at := _next_difference(a, b, max(end - base, 0))) < len(a):
            behind = behind_word(base + at, end)
            if behind is None:
                return False
            end = behind
        base += len(a)
    return True


def _next_difference(one: bytes, other: bytes, start: int) -> int:
    """Return where both differ next; their size if nowhere."""
    size = len(one)
    for block in range(start, size, _BLOCK):
        mine, theirs = one[block : block + _BLOCK], other[block : block + _BLOCK]
        if mine != theirs:
            bits = int.from_bytes(mine, "little") ^ int.from_bytes(theirs, "little")
            return block + ((bits & -bits).bit_length() - 1) // 8
    return size
