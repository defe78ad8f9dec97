"""Names of members that lead outside of the environment, or that installers refuse (:pep:`427`)."""

from __future__ import annotations

import posixpath
import re

__all__ = ["outside_reason"]

_DRIVE = re.compile(r"[A-Za-z]:")


def outside_reason(member: str) -> str:
    """Return why installers refuse a member's name, or write it outside of the environment; empty for a good name."""
    if member.startswith("/") or _DRIVE.match(member):
        return "an absolute path"
    if "\\" in member:
        return "a name with a backslash, which some systems take for a folder's end"
    if ".." in member.split("/"):
        return "a path that leads out of the wheel"
    return "" if posixpath.normpath(member) == member else "a path that is not in its plain form"
