"""Where the members of a wheel are installed (:pep:`427`), and how people are told of a file that is installed."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from rocwheel.linking.tree_disk import InstalledLayout

__all__ = ["installed_path", "path_in_package"]

_POSIX = InstalledLayout()
_UP = re.compile(r"\A(?:\.\./)+")


def installed_path(member: str, layout: InstalledLayout = _POSIX) -> str:
    """Return where a member is installed, relative to site-packages (:pep:`427`, "The .data directory")."""
    top, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    name = canonicalize_name(top.partition("-")[0])
    folder = layout.scheme_folder(scheme, name) if top.endswith(".data") and below else None
    return member if folder is None else folder + below


def path_in_package(path: str, source: str) -> str:
    """Return a path relative to site-packages; of what lies elsewhere, its name in its wheel or from the environment.

    >>> path_in_package("../../../bin/tool", "x/demo-1.0-py3-none-any.whl!demo-1.0.data/scripts/tool")
    'demo-1.0.data/scripts/tool'
    >>> path_in_package("../../../bin/tool", "env/bin/tool")
    'bin/tool'
    """
    if not path.startswith("../"):
        return path
    _, is_member, member = source.rpartition(".whl!")
    return member if is_member else _UP.sub("", path)
