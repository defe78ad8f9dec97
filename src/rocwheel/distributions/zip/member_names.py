"""Names of members that lead outside of the environment, or that installers refuse (:pep:`427`)."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.distributions.zip.reader import ZipMember

__all__ = ["outside_reason", "refuse_outside"]

_DRIVE = re.compile(r"[A-Za-z]:")
_UNPRINTABLE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that uv refuses, or that end a line of RECORD for ``installer``."""
_LONGEST = 255


def outside_reason(member: str) -> str:
    """Return why installers refuse a member's name, or write it outside of the environment; empty for a good name."""
    if member.startswith("/") or _DRIVE.match(member):
        return "an absolute path"
    if "\\" in member:
        return "a name with a backslash, which some systems take for a folder's end"
    if any(unicodedata.category(character) in _UNPRINTABLE for character in member):
        return "a name with a control character"
    if any(len(part.encode(errors="surrogateescape")) > _LONGEST for part in member.split("/")):
        return f"a name of more than {_LONGEST} bytes, which file systems don't take"
    if ".." in member.split("/"):
        return "a path that leads out of the wheel"
    return "" if posixpath.normpath(member) == member else "a path that is not in its plain form"


def refuse_outside(source: str, members: Iterable[ZipMember]) -> None:
    """Raise `InputError` for a member whose name is refused, or `ProblemsError` about ``source`` for several."""
    faults = [(member.source, why) for member in members if (why := outside_reason(member.name))]
    expected, remedy = "a place inside the environment", "Build the wheel again."
    raise_all(source, [InputError(place, why, expected=expected, remedy=remedy) for place, why in faults])
