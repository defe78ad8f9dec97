"""Sections that differ in words, beside a comparison of word by word."""

from __future__ import annotations

from rocwheel.artifacts.host_parts import is_same_but_moved
from trials.fuzz.harness import require

__all__ = ["compare_moved"]

_WORD = 8
_CHANGES = 4


def compare_moved(data: bytes) -> None:
    """Change bytes of an input where its last bytes say, and require that no other word than an even one may differ."""
    other = bytearray(data)
    for at in range(len(data) - 2 * _CHANGES, len(data), 2):
        if at >= 0:
            other[int.from_bytes(data[at : at + 2], "little") % len(data)] ^= 1
    words = range(0, len(data), _WORD)
    are_equal = all(data[at : at + _WORD] == other[at : at + _WORD] or _may_differ(at, len(data)) for at in words)

    def behind(at: int, start: int) -> int | None:
        word = at - at % _WORD
        return word + _WORD if word >= start and _may_differ(word, len(data)) else None

    found = is_same_but_moved(memoryview(data), memoryview(bytes(other)), behind)
    require(found == are_equal, f"sections are the same: {found}, word by word: {are_equal}")


def _may_differ(word: int, size: int) -> bool:
    return word // _WORD % 2 == 0 and word + _WORD <= size
