"""Which run path entries a repair keeps, though no package at hand has the folders that they lead to.

1. The wheel requires packages that are neither at hand nor the SDK's, so that entries may lead there:

   * A file that lacks a library keeps the entries to any folder in site-packages: packages may share a folder.
   * A file that opens libraries by name at run time keeps the entries to top-level folders of no package at hand.

   Neither keeps entries to folders that only builds have.
2. The wheel requires no such packages: a file that lacks a library keeps the absolute folders that a host may have,
   behind all others.

All other entries to folders that no package at hand has go. Entries to folders that one has are judged by
`rocwheel.linking.run_path_choice`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.counting import count
from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.linking.entries import is_build_folder, is_host_folder, resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import KeptEntries
from rocwheel.linking.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.linking.run_path_choice import LibraryPlaces

__all__ = ["entries_to_keep", "kept_entries_note"]


def entries_to_keep(file: InstalledFile, places: LibraryPlaces, *, is_lacking: bool, has_others: bool) -> KeptEntries:
    """Return what stays of a file's run path; for the rule see the module.

    ``is_lacking``: whether the file needs a library that neither the packages nor the system has. ``has_others``:
    whether its wheel requires packages that are neither at hand nor the SDK's.
    """
    entries = split_run_path(file.run_path)
    if has_others:
        led_to = (resolve_entry(entry, file.folder) for entry in entries)
        inside = frozenset(place for place in led_to if place and _is_in_packages(place))
        if is_lacking:
            return KeptEntries(inside)
        is_opener = file.elf is not None and file.elf.imports_dlopen
        return KeptEntries(_beyond(inside, places) if is_opener else frozenset())
    hosts = dict.fromkeys(entry for entry in entries if is_host_folder(entry))
    return KeptEntries(last=tuple(hosts) if is_lacking else ())


def _is_in_packages(place: str) -> bool:
    """Return whether a folder, relative to site-packages, may be a package's: inside, and not of a build."""
    return _top(place) != ".." and not is_build_folder(place)


def _beyond(folders: Iterable[str], places: LibraryPlaces) -> frozenset[str]:
    """Return the folders below top-level folders of no package at hand."""
    known = set(map(_top, places.folders))
    return frozenset(folder for folder in folders if _top(folder) not in known)


def _top(folder: str) -> str:
    return folder.partition("/")[0]


def kept_entries_note(tree: Tree, owner: Distribution, run_paths: Iterable[tuple[str, str]]) -> str:
    """Return a note that says how many entries of a wheel's run paths lead to folders of no package at hand.

    It is empty if none does. ``run_paths`` are those of the repaired files, each with the file's folder relative to
    site-packages.
    """
    known = {file.folder for file in tree.files} | {folder.folder for folder in sdk_folders()}
    found = [
        [entry for entry in split_run_path(value) if _is_elsewhere(resolve_entry(entry, folder), known)]
        for folder, value in run_paths
    ]
    others = ", ".join(sorted(packages_elsewhere(tree, owner)))
    entries, files = sum(map(len, found)), sum(map(bool, found))
    if not entries or not others:
        return ""
    return (
        f"kept {count(entries, 'run path entry', 'run path entries')} in {count(files, 'file')}: they may lead to "
        f"packages that were not given ({others}). Add those packages with --with, and only the right entries stay."
    )


def _is_elsewhere(place: str | None, known: set[str]) -> bool:
    return bool(place) and place not in known and not str(place).startswith("..")
