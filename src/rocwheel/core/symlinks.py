"""Follows the symlinks of a described tree as Linux does (path_resolution(7))."""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Callable

import msgspec

MAX_LINKS = 40
"""The number of links that Linux follows on one path before it returns ELOOP."""


class WalkEnd(enum.Enum):
    """How a walk along a path ends."""

    REACHED = "reached"
    """At the end of the path. The caller has to check whether anything exists there."""
    MISSING = "missing"
    """At something that is not a folder, before the end of the path."""
    LOOP = "loop"
    """After too many links."""
    ABOVE = "above"
    """At a ``..`` that climbs above the root."""
    OUTSIDE = "outside"
    """At a link that leaves the tree."""


class Walk(msgspec.Struct, frozen=True):
    """How a walk ended, and at which path.

    For `WalkEnd.ABOVE`, the path is that of the last link that was followed, or the whole path if there was no link.
    """

    end: WalkEnd
    path: str


class Symlinks(msgspec.Struct, frozen=True):
    """The symlinks of a tree.

    Paths are relative to the root of the tree, which is the empty path. With ``root`` set to ``/``, they are absolute,
    and ``..`` of the root is the root, as in a whole file system.
    """

    text_at: Callable[[str], str | WalkEnd | None]
    """Returns the target of the link at a path, `WalkEnd.OUTSIDE` if it leaves the tree, or `None` without a link."""
    is_folder: Callable[[str], bool] = lambda _: True
    """Returns whether a folder is at a path, without following links."""
    root: str = ""

    def follow(self, path: str, *, start: str | None = None, follows_last: bool = True) -> Walk:
        """Walk along ``path`` and follow every symlink; absolute link targets begin at the root.

        A relative path begins at ``start``, or at the root. Without ``follows_last``, the walk doesn't follow a link at
        the end of the path.
        """
        here = self.root if start is None or path.startswith("/") else start
        walker = _Walker(self, here, path, follows_last=follows_last)
        while walker.ahead:
            end = walker.step(walker.ahead.pop())
            if end is not None:
                return end
        return Walk(WalkEnd.REACHED, walker.here)


class _Walker:
    """A position on the way, and the remaining segments in reverse order."""

    def __init__(self, links: Symlinks, here: str, path: str, *, follows_last: bool) -> None:
        self.here = here
        self.ahead = _stacked(path)
        self._links = links
        self._follows_last = follows_last
        self._last_link = path
        self._followed = 0

    def step(self, segment: str) -> Walk | None:
        """Follow one segment of the path; return how the walk ends, or `None` if it continues."""
        if segment == "..":
            if not self.here:
                return Walk(WalkEnd.ABOVE, self._last_link)
            self.here = posixpath.dirname(self.here)
        elif segment not in {"", "."}:
            self.here = posixpath.join(self.here, segment)
            text = self._links.text_at(self.here) if self.ahead or self._follows_last else None
            if text is not None:
                return self._follow(text)
            if self.ahead and not self._links.is_folder(self.here):
                return Walk(WalkEnd.MISSING, self.here)
        return None

    def _follow(self, text: str | WalkEnd) -> Walk | None:
        self._followed += 1
        if self._followed > MAX_LINKS:
            return Walk(WalkEnd.LOOP, self.here)
        if isinstance(text, WalkEnd):
            return Walk(text, self.here)
        self.ahead += _stacked(text)
        self._last_link = self.here
        self.here = self._links.root if text.startswith("/") else posixpath.dirname(self.here)
        return None


def _stacked(path: str) -> list[str]:
    return path.split("/")[::-1]
