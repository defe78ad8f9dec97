"""Determines the folders in a file's run path. The rules are the same for built, linked, and repaired files.

1. Folders in the file's run path come first, then the search folders, in order. Folders that no given package has
   don't count, except for folders that the caller keeps (`KeptEntries`).
2. Each library that the file needs, or opens by name, comes from the first folder that contains it
   (`choose_folders`). A folder without such a library is omitted. A file that calls ``dlopen`` may open any library by
   name, so it gets every folder.
3. A run path that already points to every library stays unchanged.

The search order is fixed if the recipe or a description defines one. Otherwise, the search uses the fewest folders that
contain the libraries (`fewest_folders`).
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.installed_paths import SITE, InstalledLayout
from rocwheel.environment.run_path_entries import (
    goes_back,
    has_level,
    leads_nowhere,
    redundant_steps,
    resolve_entry,
    split_run_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf


class SetRunpath(msgspec.Struct, frozen=True):
    """An edit that sets a file's run path under a tag in its dynamic section.

    The edit also realigns segments of libraries that older glibc releases reject.
    """

    value: str
    tag: RunpathTag

    def applied_to(self, elf: Elf) -> Elf:
        """Return a file's data with this run path and without a run path under the other tag."""
        value = self.value or None
        is_runpath = self.tag is RunpathTag.RUNPATH
        return msgspec.structs.replace(
            elf, segments=elf.realigned, runpath=value if is_runpath else None, rpath=None if is_runpath else value
        )


class LibraryPlaces(msgspec.Struct, frozen=True):
    """The folders with the given packages' libraries, relative to site-packages."""

    providers: dict[str, tuple[str, ...]]
    """The folders with a library of this name, keyed by file name. The preferred folder comes first."""
    folders: frozenset[str]
    """All folders that exist after the packages are installed."""
    layout: InstalledLayout = InstalledLayout()
    """The layout of the environment. Programs reach site-packages only by name."""

    def has(self, folder: str) -> bool:
        """Return whether a folder exists, even if it contains only other folders."""
        return folder in self.folders or any(other.startswith(f"{folder}/") for other in self.folders)

    def joined(self, others: LibraryPlaces) -> LibraryPlaces:
        """Return the combined `LibraryPlaces`.

        If both have folders for a library, the folders of ``self`` come first.
        """
        providers = dict(self.providers)
        for name, folders in others.providers.items():
            providers[name] = tuple(dict.fromkeys((*providers.get(name, ()), *folders)))
        return LibraryPlaces(providers, self.folders | others.folders, self.layout)

    def resolve(self, entry: str, folder: str) -> str | None:
        """Return the folder of an entry in a file in ``folder``, or `None` if the folder depends on other packages.

        That is the case for an entry that doesn't start with ``$ORIGIN``, and for an entry that enters and leaves an
        unknown folder. The loader skips such an entry unless the folder exists.
        """
        place = resolve_entry(entry, folder) if all(map(self.has, redundant_steps(entry, folder))) else None
        return None if place is None else self.layout.inside(place)

    def spell(self, folder: str, origin: str) -> str:
        """Return the run path entry that a file in ``origin`` needs for a folder.

        The folder must have such an entry (`InstalledLayout.spell`).
        """
        entry = self.layout.spell(folder, origin)
        assert entry is not None
        return entry

    def leads_beyond(self, run_path: str | None, folder: str) -> bool:
        """Return whether the run path of a file in ``folder`` may point to libraries outside the given packages.

        Such libraries inherit an RPATH, and it is unknown which files they find through the RPATH.
        """
        alive = [entry for entry in split_run_path(run_path) if not leads_nowhere(entry, folder)]
        return any(self.resolve(entry, folder) not in self.folders for entry in alive)


class KeptEntries(msgspec.Struct, frozen=True):
    """Run path entries that stay even though no given package has their folders."""

    folders: frozenset[str] = frozenset()
    """Folders relative to site-packages. Entries for these folders keep their position among the other entries."""
    intended: frozenset[str] = frozenset()
    """Entries that stay unchanged. They are correct for every location of the file."""
    is_all: bool = False
    """Whether a file that calls ``dlopen`` needs only the folders with the listed libraries that it opens."""


_NOTHING = KeptEntries()


def origin_relative(folder: str, origin: str) -> str:
    """Return the run path entry that a file in ``origin`` needs for a folder.

    Both paths are relative to site-packages.
    """
    # relpath() resolves relative paths against the working directory, where ".." might not exist.
    relative = posixpath.relpath(posixpath.join(SITE, folder), posixpath.join(SITE, origin))
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def library_places(installed: Iterable[str]) -> LibraryPlaces:
    """Index the installed files, whose paths are relative to site-packages.

    The loader looks up a NEEDED name as a file name, regardless of the file's SONAME. Folders for only some processors
    (``glibc-hwcaps``) are ignored, because the loader searches them automatically.
    """
    providers: dict[str, dict[str, None]] = {}
    folders: set[str] = set()
    for path in installed:
        folder, name = posixpath.split(path)
        folders.add(folder)
        if not has_level(folder):
            providers.setdefault(name, {})[folder] = None
    return LibraryPlaces({name: tuple(found) for name, found in providers.items()}, frozenset(folders))


def fewest_folders(names: Sequence[str], places: LibraryPlaces, own: str) -> tuple[str, ...]:
    """Return a smallest set of folders that contains all available libraries in ``names``.

    Among folders with the same number of libraries, the file's ``own`` folder comes first, then the first listed
    folder.
    """
    held = {name: folders for name in names if (folders := places.providers.get(name))}
    candidates = list(dict.fromkeys([own, *(folder for folders in held.values() for folder in folders)]))
    chosen = set()
    while held:
        best = max(candidates, key=lambda folder: sum(folder in folders for folders in held.values()))
        chosen.add(best)
        held = {name: folders for name, folders in held.items() if best not in folders}
    return tuple(folder for folder in candidates if folder in chosen)


def choose_folders(names: Sequence[str], search: Iterable[str], places: LibraryPlaces) -> dict[str, tuple[str, ...]]:
    """Return the folders in ``search`` that provide libraries, in order, each with the names of its libraries.

    Each library comes from the first folder that contains it, as in the loader.
    """
    chosen: dict[str, tuple[str, ...]] = dict.fromkeys(search, ())
    for name in dict.fromkeys(names):
        holders = places.providers.get(name, ())
        first = next((folder for folder in chosen if folder in holders), None)
        if first is not None:
            chosen[first] += (name,)
    return {folder: taken for folder, taken in chosen.items() if taken}


def run_path_edit(
    elf: Elf,
    folder: str,
    search: Sequence[str],
    places: LibraryPlaces,
    tag: RunpathTag,
    kept: KeptEntries = _NOTHING,
    opened: Sequence[str] = (),
) -> SetRunpath | None:
    """Return the edit that lets a file in ``folder`` find its libraries, or `None` if no edit is needed.

    ``search`` contains the folders in search order. The module docstring describes the rules. ``opened`` are libraries
    that the file opens by name, regardless of whether it calls ``dlopen`` itself.
    """
    entries = split_run_path(elf.run_path)
    judged = tuple(entry for entry in entries if entry not in kept.intended)
    other = elf.rpath if tag is RunpathTag.RUNPATH else elf.runpath
    wanted = tuple(dict.fromkeys((*elf.wanted, *opened)))
    file = _File(
        folder,
        judged,
        wanted,
        opens_any=elf.imports_dlopen and not kept.is_all,
        is_tagged=not entries or other is None,
    )
    reached = [place for place in search if place in places.folders and places.layout.spell(place, folder)]
    changed = _changed_entries(file, reached, places, kept)
    intended = [entry for entry in entries if entry in kept.intended]
    if changed is None and len(intended) == len(set(intended)):
        return None
    spelled = {entry: entry if entry in kept.intended else _spelled(entry, folder, places) for entry in entries}
    return SetRunpath(":".join(_merged(judged if changed is None else changed, intended, spelled.values())), tag)


def _spelled(entry: str, folder: str, places: LibraryPlaces) -> str:
    place = places.resolve(entry, folder)
    return entry if place is None else places.spell(place, folder)


def _merged(chosen: Sequence[str], intended: Sequence[str], order: Iterable[str]) -> list[str]:
    """Return the distinct entries in the order of the old run path. New entries come before the intended entries."""
    old = [entry for entry in dict.fromkeys(order) if entry in chosen or entry in intended]
    new = [entry for entry in dict.fromkeys(chosen) if entry not in old]
    first = next((index for index, entry in enumerate(old) if entry in intended), len(old))
    return [*old[:first], *new, *old[first:]]


class _File(msgspec.Struct, frozen=True):
    """A file's requirements for its run path, and the entries to check."""

    folder: str
    entries: tuple[str, ...]
    wanted: tuple[str, ...]
    """The libraries that the file needs or opens by name."""
    opens_any: bool
    """Whether the file may open other libraries by name."""
    is_tagged: bool
    """Whether the file has no run path under a tag other than the new tag."""


def _changed_entries(
    file: _File, search: Sequence[str], places: LibraryPlaces, kept: KeptEntries
) -> Sequence[str] | None:
    """Return the entries that replace the checked entries, or `None` if the checked entries are correct."""
    led_to = [place for entry in file.entries if (place := places.resolve(entry, file.folder)) is not None]
    stays = [place for place in led_to if place in places.folders or place in kept.folders]
    if _is_well_formed(file, stays) and _finds_all(file, stays, search, places):
        return None
    named = list(dict.fromkeys([*stays, *search]))
    used = named if file.opens_any else choose_folders(file.wanted, named, places)
    wanted = [places.spell(place, file.folder) for place in named if place in used or place in kept.folders]
    return wanted if wanted or file.entries or not file.is_tagged else None


def _is_well_formed(file: _File, stays: Sequence[str]) -> bool:
    """Return whether each entry points to a different folder."""
    return (
        file.is_tagged and not any(map(goes_back, file.entries)) and len(stays) == len(file.entries) == len(set(stays))
    )


def _finds_all(file: _File, folders: Sequence[str], search: Iterable[str], places: LibraryPlaces) -> bool:
    """Return whether folders contain every available library.

    Files that open other libraries need all search folders.
    """
    found = [places.providers[name] for name in file.wanted if name in places.providers]
    within_reach = ([place for place in held if places.layout.spell(place, file.folder)] for held in found)
    holders = [held for held in within_reach if held]
    opens_all = not file.opens_any or all(place in folders for place in search)
    return opens_all and all(any(place in found for place in folders) for found in holders)
