"""Where the loader model finds ELF files: in a tree that is only described."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.audit.loader import Library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.binary.elf import Elf

__all__ = ["SITE", "TreeDisk", "place_of"]

SITE = "/environment/lib/python3/site-packages"
"""Where described packages are taken to be installed: deep enough for entries that lead out of it to lead nowhere."""

_MOST_LINKS = 40


class TreeDisk:
    """Described files, by their path relative to site-packages, and the symlinks among them with their raw text.

    At ``assumed`` paths there are libraries of which nothing is known: they serve every machine.
    """

    def __init__(self, files: Mapping[str, Elf], links: Mapping[str, str], assumed: Iterable[str] = ()) -> None:
        self._files = {_absolute(path): elf for path, elf in files.items()}
        self._links = {_absolute(path): text for path, text in links.items()}
        self._assumed = frozenset(map(_absolute, assumed))
        paths = (*self._files, *self._links, *self._assumed, posixpath.join(SITE, "x"))
        self._folders = {folder for path in paths for folder in _parents(path)}

    def find(self, path: str, machine: int) -> Library | None:
        """Return the ELF file of ``machine`` at an absolute path."""
        real = self.resolve(path)
        if real and real in self._assumed:
            return Library(path, real, None)
        elf = self._files.get(real or "")
        return Library(path, real, elf) if real and elf and elf.machine == machine else None

    def open(self, path: str) -> Library | None:
        """Return the ELF file at an absolute path, whatever its machine."""
        real = self.resolve(path)
        return Library(path, real, self._files[real]) if real in self._files else None

    def _is_file(self, path: str) -> bool:
        return path in self._files or path in self._assumed

    def is_folder(self, path: str) -> bool:
        """Tell whether there is a folder at an absolute path."""
        return self.resolve(path) in self._folders

    def resolve(self, path: str) -> str | None:
        """Follow links and ``..`` as a kernel does: each component has to exist."""
        waiting = path.split("/")[::-1]
        current, followed = "/", 0
        while waiting:
            part = waiting.pop()
            if part in {"", "."}:
                continue
            current = posixpath.dirname(current) if part == ".." else posixpath.join(current, part)
            if current in self._links:
                followed += 1
                if followed > _MOST_LINKS:
                    return None
                text = self._links[current]
                waiting += text.split("/")[::-1]
                current = "/" if text.startswith("/") else posixpath.dirname(current)
            elif current not in self._folders and (waiting or not self._is_file(current)):
                return None
        return current


def place_of(library: Library) -> str:
    """Return where a library of a `TreeDisk` is, relative to site-packages; any other's identity as it is."""
    inside = library.identity.removeprefix(f"{SITE}/")
    return posixpath.relpath(inside, SITE) if inside.startswith("/") else inside


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join(SITE, path))


def _parents(path: str) -> list[str]:
    parents = [posixpath.dirname(path)]
    while parents[-1] != "/":
        parents.append(posixpath.dirname(parents[-1]))
    return parents
