"""The links of a devel tree for Windows, which no archive holds: users there may not make symlinks."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.symlinks import Symlinks, WalkEnd
from rocwheel.packages.plan import TarEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["LINKS_NAME", "LostLink", "PartedLinks", "part_links", "render_links"]

LINKS_NAME = "_links.json"
"""Beside the archive: what the expanded tree has of files that stand elsewhere."""

_MOST_ROWS = 1_000_000
"""Folders of links to folders of links double with each level: a few lines could fill any memory."""


class LostLink(msgspec.Struct, frozen=True):
    """A symlink that no file can be made of."""

    path: str
    """Where it would be in the tree, relative to that."""
    link: str
    """The symlink itself, relative to the tree: another path where folders lead to the one that it is in."""
    reason: str
    """Words that follow "a symlink"."""


class PartedLinks(msgspec.Struct, frozen=True):
    """A devel tree in two parts, and what has no place in either."""

    files: tuple[TarEntry, ...]
    """The regular files."""
    links: dict[str, str]
    """Other files by their path in the tree, each with the path in site-packages of a regular file."""
    lost: tuple[LostLink, ...]


def part_links(root: str, entries: Iterable[TarEntry], others: Iterable[str] = ()) -> PartedLinks:
    """Return the files of a devel tree apart from its links, these led to the regular files at their ends.

    ``root`` is the tree's folder in site-packages, and ``others`` are the files of other packages there. A link to a
    folder becomes its files, so that hard links or copies can be made of the paths as they are. Links that lead
    nowhere, in a circle or to a folder that they are in are lost. Raises `InputError` for links that multiply.
    """
    listed = {entry.path: entry for entry in entries}
    files = tuple(entry for entry in listed.values() if entry.link is None)
    texts = {path: entry.link for path, entry in listed.items() if entry.link is not None}
    site = _Site(texts, {*others, *(entry.path for entry in files)})
    links: dict[str, str] = {}
    lost: list[LostLink] = []
    for path in texts:
        for place, end in site.expand(path):
            below = _below(root, place)
            if isinstance(end, str):
                links[below] = end
            else:
                lost.append(LostLink(below, _below(root, end.link), end.reason))
            if len(links) + len(lost) > _MOST_ROWS:
                raise _too_many(path)
    return PartedLinks(files, dict(sorted(links.items())), tuple(lost))


def render_links(links: Mapping[str, str]) -> str:
    """Return the text of the manifest."""
    return json.dumps({"links": links}, indent=1) + "\n"


def _below(root: str, path: str) -> str:
    # Much faster than posixpath.relpath, for links of which millions of paths can come.
    return path.removeprefix(f"{root}/")


class _Lost(msgspec.Struct, frozen=True):
    link: str
    reason: str


class _Place(msgspec.Struct, frozen=True):
    """A path of the expanded tree, what stands there before links are followed, and the links on the way."""

    place: str
    path: str
    crossed: tuple[str, ...]
    """The folders of the links on the way."""


class _Site:
    """Site-packages: symlinks by path, with their texts, and regular files."""

    def __init__(self, texts: Mapping[str, str], files: set[str]) -> None:
        self._files = files
        self._children: dict[str, set[str]] = defaultdict(set)
        for path in (*texts, *files):
            self._enter(path)
        self._texts = {path: WalkEnd.OUTSIDE if text.startswith("/") else text for path, text in texts.items()}
        self._symlinks = Symlinks(self._texts.get, self._children.__contains__)

    def _enter(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            if name in self._children[folder]:
                return
            self._children[folder].add(name)
            path = folder

    def expand(self, link: str) -> Iterator[tuple[str, str | _Lost]]:
        """Yield each path that a link becomes, with that of its regular file, or how it is lost."""
        stack = [_Place(link, link, ())]
        while stack:
            here = stack.pop()
            if here.path in self._texts:
                here, lost = self._cross(here)
                if lost:
                    yield here.place, lost
                    continue
            if here.path in self._files:
                yield here.place, here.path
            else:
                names = sorted(self._children[here.path], reverse=True)
                stack += [_Place(f"{here.place}/{name}", _join(here.path, name), here.crossed) for name in names]

    def _cross(self, at: _Place) -> tuple[_Place, _Lost | None]:
        """Return where a link leads, or how it is lost: its end has to be a file, or a folder that it isn't in."""
        walk = self._symlinks.follow(at.path)
        end, crossed = walk.path, (*at.crossed, at.path.rpartition("/")[0])
        if walk.end is not WalkEnd.REACHED or (end not in self._files and end not in self._children):
            return at, _Lost(at.path, _describe(walk.end, end))
        if any(_is_in(one, end) for one in crossed):
            return at, _Lost(at.path, f"to {end or 'site-packages'}, a folder that it is in itself")
        return _Place(at.place, end, crossed), None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _is_in(path: str, folder: str) -> bool:
    """Return whether a folder is another one, or below it; the empty path is site-packages."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _describe(end: WalkEnd, path: str) -> str:
    return {
        WalkEnd.REACHED: f"to {path}, where no file is",
        WalkEnd.MISSING: f"to what would be below {path}, which is no folder",
        WalkEnd.LOOP: f"that leads in a circle at {path}",
        WalkEnd.ABOVE: f"that leads out of site-packages at {path}",
        WalkEnd.OUTSIDE: f"that leads out of site-packages at {path}",
    }[end]


def _too_many(path: str) -> InputError:
    found = f"is a symlink with which those of the tree become more than {_MOST_ROWS:,} files"
    return InputError(path, found, remedy="Leave links to folders out by the recipe (leave-out).")
