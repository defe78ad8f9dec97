"""Names: of groups, of archives and their place below the root, and the paths by which markers lead to them."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.binary.kpack.markers import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ARCHIVE_FOLDER", "archive_path", "is_archive_folder", "name_groups", "search_path"]

ARCHIVE_FOLDER = ".kpack"
"""The folder below the root of a tree in which its archives are, unless another is chosen."""

_FOLDER = re.compile(r"[A-Za-z0-9._+/-]+")
"""Names that every system allows, and without the placeholder that markers have for targets."""

_ODD = re.compile(r"[^A-Za-z0-9._+-]")
_DIGEST_DIGITS = 8


def name_groups(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of the archive group for each library, given by paths below the root.

    It is the library's file name, with ``-`` for what some systems don't allow in names (``:``, blanks). Libraries
    whose names would be the same, also where case doesn't count, have a digest of their paths added.
    """
    plain = {path: _ODD.sub("-", posixpath.basename(path)) for path in paths}
    users = Counter(name.lower() for name in plain.values())
    return {path: name if users[name.lower()] == 1 else f"{name}-{_digest(path)}" for path, name in plain.items()}


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:_DIGEST_DIGITS]


def is_archive_folder(folder: str) -> bool:
    """Return whether archives may be in ``folder``, a path without needless parts: below the root, by its name."""
    return folder.split("/", maxsplit=1)[0] not in {"", ".."} and _FOLDER.fullmatch(folder) is not None


def archive_path(group: str, target: str, folder: str = ARCHIVE_FOLDER) -> str:
    """Return the path, below the root, of the archive of ``group`` for the base target ``target``."""
    return posixpath.join(folder, f"{group}_{target}.kpack")


def search_path(binary: str, group: str, folder: str = ARCHIVE_FOLDER) -> str:
    """Return the path by which the marker of the file ``binary``, given by its path below the root, names a group."""
    return posixpath.relpath(archive_path(group, PLACEHOLDER, folder), posixpath.dirname(binary) or ".")
