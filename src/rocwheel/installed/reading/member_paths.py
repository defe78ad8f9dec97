"""Where the members of a wheel are installed, and which names lead outside of the environment (:pep:`427`)."""

from __future__ import annotations

import posixpath
import re

__all__ = ["installed_path", "outside_reason"]

_SCHEMES = {
    "purelib": "",
    "platlib": "",
    "scripts": "../../../bin/",
    "data": "../../../",
    "headers": "../../../include/",
}
_DRIVE = re.compile(r"[A-Za-z]:")


def installed_path(member: str) -> str:
    """Return where a member is installed, relative to site-packages (:pep:`427`, "The .data directory")."""
    top, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    if top.endswith(".data") and scheme in _SCHEMES and below:
        return _SCHEMES[scheme] + below
    return member


def outside_reason(member: str) -> str:
    """Return why installers refuse a member's name, or write it outside of the environment; empty for a good name."""
    if member.startswith("/") or _DRIVE.match(member):
        return "an absolute path"
    if "\\" in member:
        return "a name with a backslash, which some systems take for a folder's end"
    if ".." in member.split("/"):
        return "a path that leads out of the wheel"
    return "" if posixpath.normpath(member) == member else "a path that is not in its plain form"
