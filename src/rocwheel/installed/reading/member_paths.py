"""Where the members of a wheel are installed (:pep:`427`)."""

from __future__ import annotations

__all__ = ["installed_path"]

_SCHEMES = {
    "purelib": "",
    "platlib": "",
    "scripts": "../../../bin/",
    "data": "../../../",
    "headers": "../../../include/",
}


def installed_path(member: str) -> str:
    """Return where a member is installed, relative to site-packages (:pep:`427`, "The .data directory")."""
    top, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    if top.endswith(".data") and scheme in _SCHEMES and below:
        return _SCHEMES[scheme] + below
    return member
