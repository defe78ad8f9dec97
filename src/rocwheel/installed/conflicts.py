"""Paths at which several distributions install a file, or a file where another has a folder."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.installed.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Conflict", "find_conflicts"]


class Conflict(msgspec.Struct, frozen=True):
    """Files that can't be installed together: all are for one path, or one is where another has a folder.

    ``files`` are in the order given; of the others in the folder the first stands for all. ``found`` is a sentence.
    """

    path: str
    files: tuple[InstalledFile, ...]
    found: str


def find_conflicts(files: Iterable[InstalledFile]) -> Iterator[Conflict]:
    """Yield each path that several files take, of one package or of several, and each file in a folder's place."""
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
        yield Conflict(path, (by_path[path][0], inner), f"{path} is a file, and also the folder of {inner.path}")


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        if path == "/":
            return
        yield path
