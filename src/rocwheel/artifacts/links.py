"""Where a symlink of the merged prefix leads."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import Entry
from rocwheel.artifacts.model.artifact import FileKind
from rocwheel.artifacts.model.paths import ancestors
from rocwheel.core.symlinks import Symlinks, WalkEnd

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LinkOutcome", "LinkTarget", "PrefixIndex", "describe_end", "resolve_link"]


class LinkOutcome(enum.Enum):
    """How following links ends."""

    FILE = "file"
    DIRECTORY = "directory"
    DANGLING = "dangling"
    LOOP = "loop"
    OUTSIDE = "outside"

    @property
    def is_found(self) -> bool:
        """Whether the links lead to something in the prefix."""
        return self in (LinkOutcome.FILE, LinkOutcome.DIRECTORY)


_OUTCOMES = {
    WalkEnd.MISSING: LinkOutcome.DANGLING,
    WalkEnd.LOOP: LinkOutcome.LOOP,
    WalkEnd.ABOVE: LinkOutcome.OUTSIDE,
    WalkEnd.OUTSIDE: LinkOutcome.OUTSIDE,
}


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
        """Index the entries; of several for one path, the first that is not a directory counts, as on a file system."""
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

    def is_directory(self, path: str) -> bool:
        """Return whether a directory stands at ``path``, links not followed."""
        return self.kind(path) is FileKind.DIRECTORY

    def link_text(self, path: str) -> str | WalkEnd | None:
        """Return the text of the symlink at ``path``, if there is one; an absolute one leaves the prefix."""
        entry = self.entries.get(path)
        text = entry.link if entry is not None else None
        return WalkEnd.OUTSIDE if text is not None and text.startswith("/") else text


def resolve_link(index: PrefixIndex, path: str) -> LinkTarget:
    """Follow ``path`` through every symlink on its way, the last one included, as the kernel would inside the prefix.

    An absolute link, or one that climbs above the prefix, ends `LinkOutcome.OUTSIDE`.
    """
    walk = Symlinks(index.link_text, index.is_directory).follow(path)
    if walk.end is not WalkEnd.REACHED:
        return LinkTarget(_OUTCOMES[walk.end], walk.path)
    if index.is_directory(walk.path):
        return LinkTarget(LinkOutcome.DIRECTORY, walk.path)
    entry = index.entries.get(walk.path)
    return LinkTarget(LinkOutcome.DANGLING if entry is None else LinkOutcome.FILE, walk.path, entry)


def describe_end(target: LinkTarget) -> str:
    """Return where a link leads, as the words that follow "a symlink"."""
    path = target.path or "."
    return {
        LinkOutcome.FILE: f"to {path}, but no package contains it",
        LinkOutcome.DIRECTORY: f"to the folder {path}, which wheels can't hold: at most the devel package contains it",
        LinkOutcome.DANGLING: f"to {path}, but no artifact contains it",
        LinkOutcome.LOOP: f"that leads in a circle at {path}",
        LinkOutcome.OUTSIDE: f"that leads out of the prefix at {path}",
    }[target.outcome]
