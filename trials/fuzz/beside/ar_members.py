"""What arpy, and a reading by hand, have of the members of an ``ar`` archive, held against what rocwheel reads.

The reading by hand has an answer for plain archives alone, which rocwheel may not refuse; it knows Microsoft's tables.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import arpy

from trials.fuzz.harness import require, take_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.bundles.device_code import ArMember

__all__ = ["compare_members"]

Member = tuple[str, int, int]
"""Name, offset and size."""

_DOUBTS = re.compile(rb"#1/|/SYM64/|//(?! {14})|/[0-9]+/")
"""Where the two differ: names before bytes are those of BSD, which rocwheel has not; arpy has more tables of names, and
takes a number that ends in a slash for a place in one."""
_HEADER = re.compile(
    rb"(/|//|/SYM64/|/[0-9]{1,9}|[!-.0-~]{1,15}/) *(?<=\A.{16}).{32}([0-9]{1,9}) *(?<=\A.{58})`\n", re.DOTALL
)
_LONG_NAME = re.compile(rb"([^\0\n]+)[\0\n]")
_TABLES = {b"/", b"/SYM64/"}
_LONGEST = 4096
_OF_MEMBERS = {arpy.HEADER_NORMAL, arpy.HEADER_GNU}


def compare_members(members: Iterable[ArMember], data: bytes) -> list[ArMember]:
    """Return the members: the same at the same places as arpy has, if it reads the whole archive, and as by hand.

    Raises what reading the members does, unless there is an answer by hand.
    """
    by_hand = _by_hand(data)
    members = take_all(members, by_hand)
    require(by_hand is None or by_hand == _plain(members), f"{members}, by hand they are {by_hand}")
    theirs = _read(data)
    # arpy doesn't count blanks and ends of lines before a name, which no tool writes.
    if theirs is not None and not any(one.name[:1].isspace() for one in members):
        own = [(name.rstrip("/"), offset, size) for name, offset, size in _plain(members)]
        require(own == theirs, f"members {own}, arpy has {theirs}")
    return members


def _plain(members: Iterable[ArMember]) -> list[Member]:
    return [(one.name, one.offset, one.size) for one in members]


def _by_hand(data: bytes) -> list[Member] | None:
    """Return the members of a plain archive; none for any other."""
    found: list[Member] = []
    position, table = 8, b""
    while position < len(data):
        header = _HEADER.fullmatch(data[position : position + 60])
        start = position + 60
        if header is None or start + int(header[2]) > len(data):
            return None
        name, size = header[1], int(header[2])
        if name == b"//" and not table:
            table = data[start : start + size]
        elif name not in _TABLES:
            name = _named(name, table)
            if not name:
                return None
            found.append((name.removesuffix(b"/").decode("utf-8", "backslashreplace"), start, size))
        position = start + size + size % 2
    return found


def _named(name: bytes, table: bytes) -> bytes:
    """Return a member's name, from the table of long ones if it says so; empty for one that is in doubt."""
    if not name.startswith(b"/"):
        return name
    place = name[1:]
    long = _LONG_NAME.match(table, int(place)) if place.isdigit() else None
    return long[1] if long and len(long[1]) <= _LONGEST else b""


def _has_both_ends(data: bytes, header: arpy.ArchiveFileHeader) -> bool:
    """Return whether a table of names has zeros and newlines; rocwheel ends names at both, arpy at zeros only.

    Neither is in the name of a file that a tool puts into such a table.
    """
    table = data[header.offset + 60 :][: header.size] if header.type == arpy.HEADER_GNU_TABLE else b""
    return b"\0" in table and b"\n" in table


def _read(data: bytes) -> list[Member] | None:
    if _DOUBTS.search(data):
        return None
    try:
        archive = arpy.Archive(fileobj=io.BytesIO(data))
        archive.read_all_headers()
    except (arpy.ArchiveFormatError, ValueError):
        return None
    if any(_has_both_ends(data, one) for one in archive.headers):
        return None
    found = [one for one in archive.headers if one.type in _OF_MEMBERS]
    return [(one.name.rstrip(b"/").decode("utf-8", "backslashreplace"), one.file_offset, one.size) for one in found]
