"""Words by which a section differs from itself after it and others have moved."""

from __future__ import annotations

import struct
from typing import NamedTuple

from rocwheel.binary.elf.header import SHF_EXECINSTR, SHF_WRITE

__all__ = ["DISTANCE", "EDIT", "LONG_WORD", "NEW", "NUMBER", "OLD", "OTHERS", "TOO_FAR", "Edit", "Place"]


class Place(NamedTuple):
    """Where a section was, where it is now, and its sizes then and now."""

    start: int
    size: int
    new_start: int
    new_size: int
    flags: int

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where it began and begins, and where it ended and ends."""
        return (self.start, self.new_start), (self.start + self.size, self.new_start + self.new_size)


OLD, NEW = 0x9000, 0xD000
OTHERS = (
    Place(0x1000, 0x1000, 0x1000, 0x1000, SHF_EXECINSTR),
    Place(0x5000, 0x1000, 0x8000, 0x1000, SHF_WRITE),
    Place(0x20000, 0x800, 0x30000, 0x1000, 0),
)
"""Other sections: code that hasn't moved, data that has, and what has grown."""

LONG_WORD, DISTANCE, NUMBER, TOO_FAR = range(4)
"""Ways to change a word: an address that has moved, one from the word's place, a number, one that moved elsewhere."""
_FAR = 33
"""With this factor, the signed byte of an edit reaches over 4,096 bytes."""


class Edit(NamedTuple):
    """A word that differs: four bytes of an input."""

    at: int
    way: int = LONG_WORD
    place: int = 0
    is_end: bool = False
    """Whether its address is counted from the end of a section, not from the start."""
    is_far: bool = False
    is_relocated: bool = False
    distance: int = 0

    @classmethod
    def parse(cls, raw: bytes) -> Edit:
        """Read an edit: the place as two bytes, one of bits, and the distance as a signed byte."""
        at, bits, distance = EDIT.unpack(raw)
        return cls(at, bits & 3, bits >> 2 & 3, bool(bits & 16), bool(bits & 32), bool(bits & 64), distance)

    def pack(self) -> bytes:
        """Return what `parse` reads."""
        bits = self.way | self.place << 2 | self.is_end << 4 | self.is_far << 5 | self.is_relocated << 6
        return EDIT.pack(self.at, bits, self.distance)

    def words(self, places: tuple[Place, ...]) -> tuple[bytes, bytes]:
        """Return the word in the one section and in the other."""
        if self.way == NUMBER:
            return _word(8, self.distance), _word(8, self.distance ^ 1)
        offset = self.distance * (_FAR if self.is_far else 1)
        old, new = (end + offset for end in places[self.place].ends[self.is_end])
        if self.way == DISTANCE:
            return _word(4, old - OLD - self.at), _word(4, new - NEW - self.at)
        return _word(8, old), _word(8, new + (self.way == TOO_FAR))


EDIT = struct.Struct("<HBb")


def _word(size: int, value: int) -> bytes:
    return (value % (1 << 8 * size)).to_bytes(size, "little")
