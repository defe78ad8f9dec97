"""Symlinks of an import: each is resolved in its source, and then points to the new place of its target."""

from __future__ import annotations

import posixpath

import msgspec

from rocwheel.artifacts.importing.choose_artifact import Destination, Origin
from rocwheel.artifacts.model.paths import ancestors
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.symlinks import MAX_LINKS, Symlinks, WalkEnd

__all__ = ["LinkTree", "MovedLink", "SymlinkError"]


_ELSEWHERE = "/"
"""Stands for any path outside of the sources, whose paths are relative."""


class SymlinkError(InputError):
    """A symlink that leaves its source or never ends."""


class MovedLink(msgspec.Struct, frozen=True):
    """A symlink at its new place."""

    origin: Origin
    destination: Destination
    text: str
    """Relative to the folder of the link."""


class _Link(msgspec.Struct, frozen=True):
    origin: Origin
    destination: Destination
    raw: str
    is_outside: bool


class LinkTree:
    """What is where in the sources, and where it goes."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._placed: dict[str, Destination] = {}
        self._left_out: set[str] = set()

    def add_file(self, source: str, destination: Destination) -> None:
        """Record where a file went."""
        self._placed[source] = destination

    def add_link(self, origin: Origin, destination: Destination, raw: str, *, is_outside: bool = False) -> None:
        """Record a symlink. An absolute one starts at the root of the source, or dangles if it ``is_outside``.

        Raises `SymlinkError` when another prefix has a link to something else at that place.
        """
        known = self._links.get(origin.path)
        if known and not origin.package and (known.raw, known.is_outside) != (raw, is_outside):
            found = f"is a symlink to {raw!r}, but one to {known.raw!r} in {known.origin.source}"
            raise SymlinkError(str(origin), found, remedy="Leave one of them out.")
        self._links[origin.path] = _Link(origin, destination, raw, is_outside)

    def leave_out(self, source: str) -> None:
        """Record that a file of the source is not imported."""
        self._left_out.add(source)

    def placed(self, source: str) -> Destination | None:
        """Return where a file went, if it was imported."""
        return self._placed.get(source)

    def resolve(self, problems: list[RocwheelError]) -> tuple[list[MovedLink], list[str]]:
        """Return the links at their new places, and the source paths of those whose target is not among the sources.

        A link whose target goes to the link's own place vanishes: two names became one. A link to something that is
        left out vanishes too. Links that leave the source or run in circles are added to ``problems``.
        """
        folders = {folder for path in (*self._placed, *self._links) for folder in ancestors(path)}
        moved, dangling = [], []
        for source, link in sorted(self._links.items()):
            try:
                target = self._follow_to_end(source)
            except SymlinkError as e:
                problems.append(e)
                continue
            new_target = self._new_path(target, folders)
            if new_target is None:
                if target not in self._left_out:
                    dangling.append(source)
            elif new_target != link.destination.path:
                text = posixpath.relpath(new_target, posixpath.dirname(link.destination.path) or ".")
                moved.append(MovedLink(link.origin, link.destination, text))
        return moved, dangling

    def _new_path(self, target: str, folders: set[str]) -> str | None:
        if target in self._links:
            return self._links[target].destination.path
        if target in self._placed:
            return self._placed[target].path
        if target in folders:
            return self._new_folder(target)
        return None

    def _new_folder(self, folder: str) -> str | None:
        """Return where a folder went, judged by the first file in it that kept its place there."""
        for source, destination in self._placed.items():
            rest = source.removeprefix(folder)
            if rest != source and rest.startswith("/") and destination.path.endswith(rest):
                return destination.path.removesuffix(rest)
        return None

    def _follow_to_end(self, source: str) -> str:
        """Return what a link points to, one step away. Further steps are walked only to check that they end."""
        first = self._step(source)
        target = first
        for _ in range(MAX_LINKS):
            if target not in self._links:
                return first
            target = self._step(target)
        raise self._endless(source)

    def _step(self, source: str) -> str:
        """Return the source path that a link's text names, with the links among its folders resolved."""
        if self._links[source].is_outside:
            return _ELSEWHERE
        start = posixpath.dirname(source)
        walk = Symlinks(self._text_at).follow(self._links[source].raw, start=start, follows_last=False)
        if walk.end is WalkEnd.ABOVE:
            raise self._leaving(source)
        if walk.end is WalkEnd.LOOP:
            raise self._endless(source)
        return _ELSEWHERE if walk.end is WalkEnd.OUTSIDE else walk.path

    def _text_at(self, path: str) -> str | WalkEnd | None:
        link = self._links.get(path)
        if link is None:
            return None
        return WalkEnd.OUTSIDE if link.is_outside else link.raw

    def _endless(self, source: str) -> SymlinkError:
        origin = str(self._links[source].origin)
        return SymlinkError(origin, "is a symlink that runs in circles", remedy="Repair the source.")

    def _leaving(self, source: str) -> SymlinkError:
        link = self._links[source]
        found = f"is a symlink that leaves the tree through {link.raw!r}"
        return SymlinkError(str(link.origin), found, expected="links to what is in the same source")
