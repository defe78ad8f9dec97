"""Where a symlink of the merged prefix leads."""

from __future__ import annotations

import enum
import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import Entry
from rocwheel.artifacts.model.artifact import FileKind
from rocwheel.artifacts.model.paths import ancestors

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_LINKS", "LinkOutcome", "LinkTarget", "PrefixIndex", "describe_end", "resolve_link"]

MAX_LINKS = 40
"""Links that Linux follows on one way before it answers ELOOP (path_resolution(7))."""


class LinkOutcome(enum.Enum):
    """How following links ends."""

    FILE = "file"
    DIRECTORY = "directory"
    DANGLING = "dangling"
    LOOP = "loop"
    OUTSIDE = "outside"


class LinkTarget(msgspec.Struct, frozen=True):
    """Where a path leads once every symlink on the way is followed."""

    outcome: LinkOutcome
    path: str
    """The final file or directory; else the path that is missing, loops, or whose link leaves the prefix. The prefix
    itself is the empty path."""
    entry: Entry | None = None
    """The entry of a file."""


class PrefixIndex:
    """The entries of a prefix by path; a path above an entry is a directory whether or not it has an entry itself."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Index the entries; of several for one path the first that is no directory counts, as on a file system."""
        self.entries: dict[str, Entry] = {}
        self.directories: set[str] = {""}
        for entry in entries:
            known = self.entries.get(entry.path)
            if known is None or (known.kind is FileKind.DIRECTORY is not entry.kind):
                self.entries[entry.path] = entry
            self.directories.update(ancestors(entry.path))

    def kind(self, path: str) -> FileKind | None:
        """Return what stands at ``path``, links not followed, or None when nothing does."""
        entry = self.entries.get(path)
        if entry is not None:
            return entry.kind
        return FileKind.DIRECTORY if path in self.directories else None


def resolve_link(index: PrefixIndex, path: str) -> LinkTarget:
    """Follow ``path`` through every symlink on its way, the last one included, as the kernel would inside the prefix.

    An absolute link, or one that climbs above the prefix, ends `LinkOutcome.OUTSIDE`.
    """
    here, culprit = "", path
    ahead = _stacked(path)
    followed = 0
    while ahead:
        segment = ahead.pop()
        if segment == "..":
            if not here:
                return LinkTarget(LinkOutcome.OUTSIDE, culprit)
            here = posixpath.dirname(here)
        elif segment not in {"", "."}:
            here = posixpath.join(here, segment)
            entry = index.entries.get(here)
            if entry is None or entry.link is None:
                if index.kind(here) is not FileKind.DIRECTORY:
                    return _end(here, entry, ahead)
                continue
            followed += 1
            if followed > MAX_LINKS:
                return LinkTarget(LinkOutcome.LOOP, here)
            if entry.link.startswith("/"):
                return LinkTarget(LinkOutcome.OUTSIDE, here)
            ahead += _stacked(entry.link)
            culprit, here = here, posixpath.dirname(here)
    return LinkTarget(LinkOutcome.DIRECTORY, here)


def describe_end(target: LinkTarget) -> str:
    """Return where a link leads, as the words that follow "a symlink"."""
    path = target.path or "."
    return {
        LinkOutcome.FILE: f"to {path}, which no package has",
        LinkOutcome.DIRECTORY: f"to the folder {path}, which wheels can't hold: at most the devel package has it",
        LinkOutcome.DANGLING: f"to {path}, which no artifact has",
        LinkOutcome.LOOP: f"that leads in a circle at {path}",
        LinkOutcome.OUTSIDE: f"that leads out of the prefix at {path}",
    }[target.outcome]


def _stacked(path: str) -> list[str]:
    return path.split("/")[::-1]


def _end(path: str, entry: Entry | None, ahead: list[str]) -> LinkTarget:
    if entry is None or ahead:  # Even a slash after a file leads nowhere.
        return LinkTarget(LinkOutcome.DANGLING, path)
    return LinkTarget(LinkOutcome.FILE, path, entry)
