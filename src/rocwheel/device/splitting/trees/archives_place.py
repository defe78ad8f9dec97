"""Where archives go in a tree: a folder that a link leads to is the folder itself, for every part of the split."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.planning.names import is_archive_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.device.splitting.files import SplitPlan

__all__ = ["find_place", "require_free"]

_EXPECTED = "another folder for archives"


def find_place(root: Path, folder: str) -> str:
    """Return where ``folder`` is below ``root``, without a link on the way; it needn't be there.

    The part of a target could not be laid over that of the host if one had a folder where the other has a link to it.
    Raises `InputError` for a file in the way, and for a link that leads nowhere, to a file, out of the tree, or to a
    name that no marker may have.
    """
    parts = folder.split("/")
    for number in range(1, len(parts) + 1):
        _require_folder(root, "/".join(parts[:number]), "/".join(parts[number:]))
    place = os.path.relpath(os.path.realpath(root / folder), os.path.realpath(root))
    if place != folder and not is_archive_folder(place):
        expected = f"{_EXPECTED}: names of A-Z, a-z, 0-9 and ._+- alone"
        raise InputError(folder, f"leads to {quoted(place)}, and archives would be below it", expected=expected)
    return "" if place == "." else place


def require_free(plan: SplitPlan, taken: Iterable[str]) -> None:
    """Raise `InputError`, or `ProblemsError` for several, for archives whose place is among the paths ``taken``."""
    names = {path.lower() for path in taken}
    places = dict.fromkeys(archive.path for archive in plan.iter_archives())
    problems = [_taken(path) for path in places if path.lower() in names]
    raise_all("archives", problems)


def _taken(path: str) -> InputError:
    remedy = "Join first, or name another folder by --archives."
    return InputError(path, "is in the tree, and would be made", expected="a tree without it", remedy=remedy)


def _require_folder(root: Path, path: str, rest: str) -> None:
    """Raise `InputError` unless ``path`` is a folder of the tree, a link to one, or not there."""
    step = root / path
    if step.is_symlink():
        text = str(step.readlink())
        if fault := _fault_of_link(root, step):
            found = f"is a symlink to {quoted(text)}, {fault}, and archives would be below it"
            raise InputError(path, found, expected=_EXPECTED, remedy=_remedy(root, text, rest))
    elif step.exists() and not step.is_dir():
        raise InputError(path, "is a file, and archives would be below it", expected=_EXPECTED)


def _fault_of_link(root: Path, link: Path) -> str:
    """Return why archives can't be below a link; empty if they can be where it leads."""
    top, aim = os.path.realpath(root), os.path.realpath(link)
    if os.path.commonpath([top, aim]) != top:
        return "out of the tree"
    if not link.exists():
        return "where nothing is"
    return "" if link.is_dir() else "which is a file"


def _remedy(root: Path, text: str, rest: str) -> str:
    """Return which folder may be meant by a link's absolute text: in the image of a system it begins at the root."""
    meant = posixpath.normpath(text).lstrip("/")
    folder = posixpath.join(meant, rest) if rest else meant
    is_there = text.startswith("/") and is_archive_folder(folder) and (root / meant).is_dir()
    return f"Give --archives {folder}." if is_there else ""
