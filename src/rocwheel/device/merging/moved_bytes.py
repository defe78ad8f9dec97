"""Whether two sections are the same but for addresses: what they point to has moved, and nothing else changed.

A linker puts sections one behind another, so that one that grows moves those behind it. Each address, and each distance
from one section to another, then differs by how far its ends have moved. These steps are few and known; a difference
of four bytes that is none of them is a change of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.files.file_view import iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.foundation.files.file_view import Data

__all__ = ["all_steps", "is_same_but_moved"]

_WORD = 4
_MASK = (1 << 32) - 1
_BLOCK = 64


def all_steps(moves: Iterable[int]) -> frozenset[int]:
    """Return by how much four bytes may differ, modulo 2^32, where places have moved by ``moves`` bytes."""
    ends = {0, *moves}
    return frozenset((one - other) & _MASK for one in ends for other in ends) - {0}


def is_same_but_moved(one: Data, other: Data, steps: frozenset[int]) -> bool:
    """Return whether all that differs between two sections of one size is words that differ by one of ``steps``."""
    if len(one) != len(other):
        return False
    rest_one = rest_other = b""
    for mine, theirs in zip(iter_pieces(one), iter_pieces(other), strict=True):
        a, b = rest_one + bytes(mine), rest_other + bytes(theirs)
        end = _compare(a, b, steps, len(a) - _WORD)
        if end is None:
            return False
        rest_one, rest_other = a[end:], b[end:]
    return _compare(rest_one, rest_other, steps, len(rest_one)) is not None


def _compare(one: bytes, other: bytes, steps: frozenset[int], limit: int) -> int | None:
    """Compare up to the first difference behind ``limit``; return where a word may begin that isn't whole yet.

    None where something else than a word differs.
    """
    end = at = 0
    while (at := _next_difference(one, other, at)) < limit:
        # Pages are moved by multiples of 4096, so that the lowest byte of a word may be the same.
        start = next((s for s in range(at, max(at - _WORD, end - 1), -1) if _step(one, other, s) in steps), None)
        if start is None:
            return None
        at = end = start + _WORD
    return max(end, min(at, len(one)) - _WORD + 1)


def _next_difference(one: bytes, other: bytes, start: int) -> int:
    """Return where both differ next; their size if nowhere."""
    size = len(one)
    for block in range(start, size, _BLOCK):
        mine, theirs = one[block : block + _BLOCK], other[block : block + _BLOCK]
        if mine != theirs:
            bits = int.from_bytes(mine, "little") ^ int.from_bytes(theirs, "little")
            return block + ((bits & -bits).bit_length() - 1) // 8
    return size


def _step(one: bytes, other: bytes, start: int) -> int:
    stop = start + _WORD
    return int.from_bytes(other[start:stop], "little") - int.from_bytes(one[start:stop], "little") & _MASK
