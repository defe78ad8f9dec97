"""What arpy reads of the members of an ``ar`` archive, held against what rocwheel reads."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import arpy

from fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.bundles.ar_archive import ArMember

__all__ = ["compare_members"]

_DOUBTS = re.compile(rb"#1/|/SYM64/|//(?! {14})")
"""Where the two differ: names before bytes are those of BSD, which rocwheel has not; arpy has more tables of names."""
_OF_MEMBERS = {arpy.HEADER_NORMAL, arpy.HEADER_GNU}


def compare_members(members: Iterable[ArMember], data: bytes) -> None:
    """Require that arpy, if it reads the whole archive, has the same members at the same places."""
    members = list(members)
    theirs = _read(data)
    # arpy doesn't count blanks before a name, which no tool writes.
    if theirs is not None and not any(one.name.startswith(" ") for one in members):
        own = [(one.name.rstrip("/"), one.offset, one.size) for one in members]
        require(own == theirs, f"members {own}, arpy has {theirs}")


def _read(data: bytes) -> list[tuple[str, int, int]] | None:
    if _DOUBTS.search(data):
        return None
    try:
        archive = arpy.Archive(fileobj=io.BytesIO(data))
        archive.read_all_headers()
    except (arpy.ArchiveFormatError, ValueError):
        return None
    found = [one for one in archive.headers if one.type in _OF_MEMBERS]
    return [(one.name.rstrip(b"/").decode("utf-8", "backslashreplace"), one.file_offset, one.size) for one in found]
