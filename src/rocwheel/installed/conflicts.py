"""Places that members of wheels can't take: outside of the environment, or where another file is (:pep:`427`)."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.installed.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Conflict", "find_conflicts", "outside_reason"]

_DRIVE = re.compile(r"[A-Za-z]:")


class Conflict(msgspec.Struct, frozen=True):
    """Files that are installed at one path, or one of which is where others have a folder; in the order given."""

    path: str
    files: tuple[InstalledFile, ...]
    found: str


def outside_reason(member: str) -> str:
    """Return why installers refuse the name of a wheel's member, or write outside of the environment; else nothing."""
    if member.startswith("/") or _DRIVE.match(member):
        return "an absolute path"
    if "\\" in member:
        return "a name with a backslash, which some systems take for a folder's end"
    if ".." in member.split("/"):
        return "a path that leads out of the wheel"
    return "" if posixpath.normpath(member) == member else "a path that is not spelled plainly"


def find_conflicts(files: Iterable[InstalledFile]) -> Iterator[Conflict]:
    """Give each path that several files take, of one package or of several, and each file in a folder's place."""
    by_path: dict[str, list[InstalledFile]] = defaultdict(list)
    for file in files:
        by_path[file.path].append(file)
    for path, found in sorted(by_path.items()):
        if len(found) > 1:
            alike = "the same" if len({file.sha256 for file in found}) == 1 else "different"
            yield Conflict(path, tuple(found), f"{len(found)} files are installed at {path}, with {alike} content")
    below = {folder: path for path in by_path for folder in _parents(path)}
    for path in sorted(below.keys() & by_path.keys()):
        inner = by_path[below[path]][0]
        yield Conflict(path, (by_path[path][0], inner), f"{path} is a file, and the folder of {inner.path}")


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        if path == "/":
            return
        yield path
