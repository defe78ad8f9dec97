"""Follows symbolic links in the description of a file tree, in the same way as Linux (path_resolution(7))."""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Callable

import msgspec

MAX_LINKS = 40
"""The maximum number of links in a path on Linux. If a path has more links, Linux returns ELOOP."""


class WalkEnd(enum.Enum):
    """The possible ends of a walk along a path."""

    REACHED = "reached"
    """At the end of the path. The caller must check whether the path exists."""
    MISSING = "missing"
    """Before the end of the path, at a part that isn't a folder."""
    LOOP = "loop"
    """After too many links."""
    ABOVE = "above"
    """At a ``..`` that would go above the root."""
    OUTSIDE = "outside"
    """At a link that leaves the tree."""


class Walk(msgspec.Struct, frozen=True):
    """The end of a walk: its kind and its path.

    For `WalkEnd.ABOVE`, the path belongs to the last link that was followed. If there was no link, it is the complete
    path.
    """

    end: WalkEnd
    path: str


class Symlinks(msgspec.Struct, frozen=True):
    """The symbolic links in a tree.

    Paths are relative to the root of the tree, which is the empty path. If ``root`` is ``/``, paths are absolute, and
    ``..`` in the root is the root, as in a complete file system.
    """

    text_at: Callable[[str], str | WalkEnd | None]
    """Returns the target of the link at a path, `WalkEnd.OUTSIDE` for a target outside, or `None` for no link."""
    is_folder: Callable[[str], bool] = lambda _: True
    """Returns whether the path is a folder, without following links."""
    root: str = ""

    def follow(self, path: str, *, start: str | None = None, follows_last: bool = True) -> Walk:
        """Walk along ``path`` and follow all symbolic links. Absolute link targets begin at the root.

        A relative path begins at ``start``, or at the root. If ``follows_last`` is false, a link at the end of the path
        isn't followed.
        """
        here = self.root if start is None or path.startswith("/") else start
        walker = _Walker(self, here, path, follows_last=follows_last)
        while walker.ahead:
            end = walker.step(walker.ahead.pop())
            if end is not None:
                return end
        return Walk(WalkEnd.REACHED, walker.here)


class _Walker:
    """A position in a walk, and the remaining segments in reverse order."""

    def __init__(self, links: Symlinks, here: str, path: str, *, follows_last: bool) -> None:
        self.here = here
        self.ahead = _stacked(path)
        self._links = links
        self._follows_last = follows_last
        self._last_link = path
        self._followed = 0

    def step(self, segment: str) -> Walk | None:
        """Follow one segment of the path. Return the end of the walk, or `None` if the walk continues."""
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
