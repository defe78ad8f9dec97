"""Which run path a file of an installed package needs, by the places that its packages keep shared libraries in."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.linking.entries import (
    goes_back,
    is_build_folder,
    is_host_folder,
    resolve_entry,
    split_run_path,
)
from rocwheel.linking.hwcaps import has_level
from rocwheel.linking.tree_disk import SITE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf

__all__ = ["Keeping", "LibraryPlaces", "SetRunpath", "library_places", "origin_relative", "run_path_edit"]


class SetRunpath(msgspec.Struct, frozen=True):
    """An edit: the file gets this run path, under this tag of its dynamic section."""

    value: str
    tag: RunpathTag


class LibraryPlaces(msgspec.Struct, frozen=True):
    """Where shared libraries stand, in folders relative to site-packages."""

    providers: dict[str, frozenset[str]]
    """File name to the folders that hold a file of that name."""
    folders: frozenset[str]
    """Every folder that exists once the packages are installed."""

    def is_beyond(self, folder: str | None) -> bool:
        """Tell whether a folder may be of a package that is not among these: in site-packages, and no build folder."""
        if not folder or is_build_folder(folder):
            return False
        return folder.partition("/")[0] not in {"..", *(known.partition("/")[0] for known in self.folders)}


class Keeping(msgspec.Struct, frozen=True):
    """Which entries stay though they lead to no folder of the packages."""

    beyond: bool = False
    """Those that lead into a package that is not among these, by its top-level folder."""
    absent: bool = False
    """Those that lead to any folder in site-packages: packages may share their top-level folder."""
    hosts: bool = False
    """Those that lead to folders of the host; they become the last ones."""

    def holds(self, folder: str, places: LibraryPlaces) -> bool:
        """Tell whether an entry stays that leads to a folder, relative to site-packages."""
        is_inside = bool(folder) and not folder.startswith("..") and not is_build_folder(folder)
        return (self.beyond and places.is_beyond(folder)) or (self.absent and is_inside)


_NOTHING = Keeping()


def origin_relative(folder: str, origin: str) -> str:
    """Spell a folder as a run path entry of a file in ``origin``; both relative to site-packages."""
    # relpath() takes relative paths for such in the working folder, where ".." may lead nowhere.
    relative = posixpath.relpath(posixpath.join(SITE, folder), posixpath.join(SITE, origin))
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def run_path_edit(
    elf: Elf,
    folder: str,
    search: Sequence[str],
    places: LibraryPlaces,
    tag: RunpathTag,
    keeping: Keeping = _NOTHING,
) -> SetRunpath | None:
    """Return the edit that a file in ``folder`` needs so that its libraries are found, none if it is right already.

    The rule: entries of the file that lead to a folder of the packages stay first. A file that opens libraries by
    name at run time (it imports dlopen) also gets every folder of ``search``; any other only those folders that hold
    what it names as NEEDED. Entries that lead elsewhere, or nowhere, go, but for those of ``keeping``.
    """
    needed = [places.providers[name] for name in elf.wanted if name in places.providers]
    current = _entries(elf)
    hosts = [text for text in dict.fromkeys(current) if keeping.hosts and is_host_folder(text)]
    led_to = [place for text in current if (place := resolve_entry(text, folder)) is not None]
    beyond = {place for place in led_to if keeping.holds(place, places)}
    kept = [place for place in led_to if place in places.folders or place in beyond]
    if _is_right(elf, _before(hosts, current), kept, tag) and _serves(elf, kept, needed, search, places):
        return None
    used = _wanted(elf, kept, needed, [place for place in search if place in places.folders])
    wanted = [place for place in dict.fromkeys([*kept, *used]) if place in used or place in beyond]
    entries = [*(origin_relative(place, folder) for place in wanted), *hosts]
    if not entries and not current:
        return None
    return SetRunpath(":".join(entries), tag)


def _before(last: list[str], entries: Sequence[str]) -> Sequence[str]:
    """Return the entries before ``last``; all where these are not the last ones."""
    split = len(entries) - len(last)
    return entries[:split] if list(entries[split:]) == last else entries


def _wanted(elf: Elf, kept: list[str], needed: list[frozenset[str]], search: list[str]) -> list[str]:
    places = list(dict.fromkeys([*kept, *search]))
    if elf.imports_dlopen:
        return places
    first = (next((place for place in places if place in holders), None) for holders in needed)
    used = set(first)
    return [place for place in places if place in used]


def _is_right(elf: Elf, current: Sequence[str], kept: list[str], tag: RunpathTag) -> bool:
    if not _entries(elf):
        return True
    tagged = (elf.rpath is None) if tag is RunpathTag.RUNPATH else (elf.runpath is None)
    return tagged and not any(map(goes_back, current)) and len(kept) == len(current) == len(set(kept))


def _serves(
    elf: Elf, kept: list[str], needed: list[frozenset[str]], search: Iterable[str], places: LibraryPlaces
) -> bool:
    opens_all = not elf.imports_dlopen or all(place in kept for place in search if place in places.folders)
    return opens_all and all(any(place in holders for place in kept) for holders in needed)


def _entries(elf: Elf) -> tuple[str, ...]:
    return split_run_path(elf.run_path)


def library_places(installed: Iterable[str]) -> LibraryPlaces:
    """Index the installed files, by path relative to site-packages.

    The loader looks for a NEEDED name as a file name, whatever SONAME the file has, or whether it has one. Folders for
    some processors alone provide nothing: the loader looks into them by itself.
    """
    providers: dict[str, set[str]] = {}
    folders: set[str] = set()
    for path in installed:
        folder, name = posixpath.split(path)
        folders.add(folder)
        if has_level(folder):
            continue
        providers.setdefault(name, set()).add(folder)
    return LibraryPlaces({name: frozenset(where) for name, where in providers.items()}, frozenset(folders))
