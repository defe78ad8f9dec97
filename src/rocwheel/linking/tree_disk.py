"""Where the loader model finds ELF files in a tree that is only described."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.symlinks import Symlinks, Walk, WalkEnd
from rocwheel.linking.loader import Library, LoaderStop
from rocwheel.linking.obstacles import CIRCLE, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.linking.obstacles import Obstacle

__all__ = ["SITE", "InstalledLayout", "TreeDisk", "place_of"]

SITE = "/environment/lib/some-python/site-packages"
"""Where described packages are assumed to be installed: so deep that entries out of it lead nowhere.

No run path names this folder: what Python's folder is called on a machine is known to `InstalledLayout`, or to nobody.
"""
_PREFIX = "/environment"
_UP = "../../../"
"""From site-packages to the prefix of an environment, except on Windows."""


class InstalledLayout(msgspec.Struct, frozen=True):
    """How installers lay out an environment, as far as that is known."""

    site: str = ""
    """Site-packages from the prefix, ``lib/python3.11/site-packages``; empty if it depends on the Python."""
    is_windows: bool = False
    python: str = ""
    """The version of Python, ``3.11``; empty if several fit."""

    def scheme_folder(self, scheme: str, name: str) -> str | None:
        """Return the folder of a scheme of wheels (:pep:`427`), relative to site-packages; None for an unknown one.

        Headers of the distribution ``name`` go where pip and uv put them in virtual environments.
        """
        up = "../../" if self.is_windows else _UP
        programs = "Scripts/" if self.is_windows else "bin/"
        headers = f"include/site/python{self.python or 'X.Y'}/{name}/"
        folders = {"purelib": "", "platlib": "", "scripts": up + programs, "data": up, "headers": up + headers}
        return folders.get(scheme)

    def inside(self, place: str) -> str:
        """Return a place that is relative to site-packages without the way out of it and in again by its name."""
        below = f"{place}/".removeprefix(f"{_UP}{self.site}/") if self.site else f"{place}/"
        return below.rstrip("/")

    def spell(self, folder: str, origin: str) -> str | None:
        """Spell a folder as a run path entry of a file in ``origin``; both are relative to site-packages.

        None where the entry depends on the Python: from programs, the way to site-packages goes by its name.
        """
        goes_in = origin.startswith("..") and not folder.startswith("..")
        if goes_in and not self.site:
            return None
        top = posixpath.join(_PREFIX, self.site) if goes_in else SITE
        relative = posixpath.relpath(posixpath.join(top, folder), posixpath.normpath(posixpath.join(SITE, origin)))
        return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


_UNKNOWN = InstalledLayout()


class TreeDisk:
    """Described files, by their path relative to site-packages, and the symlinks among them with their raw text.

    At ``assumed`` paths there are libraries of which nothing is known: they serve every machine. ``obstacles`` are
    the files at which the loader stops, by path. By the ``layout``, site-packages has the name that entries spell.
    """

    def __init__(
        self,
        files: Mapping[str, Elf],
        links: Mapping[str, str],
        assumed: Iterable[str] = (),
        obstacles: Mapping[str, Obstacle] | None = None,
        layout: InstalledLayout = _UNKNOWN,
    ) -> None:
        self._files = {_absolute(path): elf for path, elf in files.items()}
        self._links = {_absolute(path): text for path, text in links.items()}
        if layout.site:
            self._links[posixpath.join(_PREFIX, layout.site)] = SITE
        self._assumed = frozenset(map(_absolute, assumed))
        self._obstacles = {_absolute(path): obstacle for path, obstacle in (obstacles or {}).items()}
        paths = (*self._files, *self._links, *self._assumed, *self._obstacles, posixpath.join(SITE, "x"))
        self._folders = {folder for path in paths for folder in _parents(path)}
        self._symlinks = Symlinks(self._links.get, self._folders.__contains__, root="/")
        self._walks: dict[str, Walk] = {}

    def find(self, path: str, machine: int) -> Library | LoaderStop | None:
        """Return the ELF file of ``machine`` at an absolute path, or the file at which the loader stops there."""
        walk = self._walk(path)
        if walk.end is WalkEnd.LOOP:
            return LoaderStop(path, CIRCLE.reason) if self.is_folder(posixpath.dirname(path)) else None
        if walk.end is not WalkEnd.REACHED:
            return None
        real = walk.path
        if real in self._assumed:
            return Library(path, real, None)
        obstacle = FOLDER if real in self._folders else self._obstacles.get(real)
        if obstacle is not None and obstacle.stops(machine):
            return LoaderStop(path, obstacle.reason)
        elf = self._files.get(real)
        return Library(path, real, elf) if elf and elf.machine == machine else None

    def open(self, path: str) -> Library | None:
        """Return the ELF file at an absolute path, whatever its machine."""
        real = self.resolve(path)
        return Library(path, real, self._files[real]) if real in self._files else None

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at an absolute path."""
        return self.resolve(path) in self._folders

    def resolve(self, path: str) -> str | None:
        """Follow links and ``..`` as a kernel does: each component has to exist."""
        walk = self._symlinks.follow(path)
        return walk.path if walk.end is WalkEnd.REACHED and self._exists(walk.path) else None

    def _walk(self, path: str) -> Walk:
        """Follow a path to a file, and walk to its folder once: many names are looked for in the same one."""
        folder, _, name = path.rpartition("/")
        around = self._walks.get(folder)
        if around is None:
            around = self._walks[folder] = self._symlinks.follow(f"{folder}/")
        real = f"{around.path.rstrip('/')}/{name}"
        if name in {"", ".", ".."} or real in self._links:
            return self._symlinks.follow(path)
        return Walk(around.end, real)

    def _exists(self, path: str) -> bool:
        return any(path in known for known in (self._folders, self._files, self._assumed, self._obstacles))


def place_of(library: Library) -> str:
    """Return where a library of a `TreeDisk` is, relative to site-packages; for any other library its identity."""
    inside = library.identity.removeprefix(f"{SITE}/")
    return posixpath.relpath(inside, SITE) if inside.startswith("/") else inside


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join(SITE, path))


def _parents(path: str) -> list[str]:
    parents = [posixpath.dirname(path)]
    while parents[-1] != "/":
        parents.append(posixpath.dirname(parents[-1]))
    return parents
