"""Where the members of a wheel are installed (:pep:`427`)."""

from __future__ import annotations

from packaging.utils import canonicalize_name

from rocwheel.linking.tree_disk import InstalledLayout

__all__ = ["installed_path"]

_POSIX = InstalledLayout()


def installed_path(member: str, layout: InstalledLayout = _POSIX) -> str:
    """Return where a member is installed, relative to site-packages (:pep:`427`, "The .data directory")."""
    top, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    name = canonicalize_name(top.partition("-")[0])
    folder = layout.scheme_folder(scheme, name) if top.endswith(".data") and below else None
    return member if folder is None else folder + below
