"""Which run path entries a repair keeps, though no package at hand has what they lead to.

A user's machine may have it: a toolkit of the system (``/opt/rocm/lib``, ``/usr/local/cuda/lib64``), or a package that
is not at hand or shares a folder with others. So every entry stays that is not proved to lead nowhere, unless the file
can do without: it finds all that it needs for sure, and opens nothing by name at run time. That is judged by what is at
hand; once it is known what the repaired wheel requires, `rocwheel.repair.run_paths.safe_edits` has the last word.

A file that opens libraries by name has strings that name them (`opened_names`). If it finds all that it needs for sure,
it gives up the folders that the SDK's packages stand in for (`Toolkit.gives_up`). Where its strings name no library,
the names come from elsewhere, and every folder stays that may have one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.audit.wheel_toolkits import Opens
from rocwheel.core.messages import count
from rocwheel.installed.library_places import assumed_package_folders
from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.linking.entries import leads_nowhere, resolve_entry, split_run_path
from rocwheel.linking.known.sdk_layout import sdk_folders
from rocwheel.linking.known.system_libraries import is_glibc_library
from rocwheel.linking.run_path_choice import KeptEntries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.audit.wheel_toolkits import Toolkit
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.linking.loader import SystemLibraries
    from rocwheel.linking.run_path_choice import LibraryPlaces

__all__ = ["entries_to_keep", "kept_entries_note", "opened_names", "what_it_opens"]

_ANY_NAME = ".so"
_SDK_TOPS = tuple(sorted({folder.folder.partition("/")[0] for folder in sdk_folders()}))
_DIRECTIVE = re.compile(r"[%{}]")


def opened_names(file: InstalledFile) -> frozenset[str]:
    """Return the names of libraries in the strings of a file that opens some by name; ``.so`` if it makes up others.

    What it needs anyway, its own names and glibc's libraries say nothing about what it opens.
    """
    if file.elf is None or not file.elf.imports_dlopen:
        return frozenset()
    names = file.mentions - {*file.elf.needed, file.elf.soname, file.name}
    made_up = {name for name in names if name.startswith(".so") or _DIRECTIVE.search(name)}
    told = {name for name in names - made_up if not is_glibc_library(name)}
    return frozenset(told | ({_ANY_NAME} if made_up else set()))


def what_it_opens(
    file: InstalledFile, declared: Sequence[str], places: LibraryPlaces, system: SystemLibraries
) -> Opens:
    """Return what is known about the libraries that a file opens by name; ``declared`` are those that a user names."""
    if file.elf is None or not file.elf.imports_dlopen:
        return Opens.NOTHING
    names = opened_names(file)
    told = {*declared, *names} - {_ANY_NAME}
    if not told:
        return Opens.ANYTHING
    nowhere = [name for name in told if name not in places.providers and system.find(name, file.elf.machine) is None]
    return Opens.NAMED if nowhere or _ANY_NAME in names else Opens.FOUND


def entries_to_keep(
    file: InstalledFile,
    places: LibraryPlaces,
    *,
    is_complete: bool,
    toolkit: Toolkit,
    opens: Opens = Opens.ANYTHING,
) -> KeptEntries:
    """Return what stays of a file's run path; for the rule see the module.

    ``is_complete``: whether the file finds all that it needs for sure.
    """
    is_opener = file.elf is not None and file.elf.imports_dlopen
    if is_complete and not is_opener and not toolkit.keeps:
        return KeptEntries()
    entries = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
    led_to = {entry: places.resolve(entry, file.folder) for entry in entries}
    stay = {
        entry: place
        for entry, place in led_to.items()
        if not is_complete or _stays(entry, place, places, toolkit, opens)
    }
    inside = frozenset(place for place in stay.values() if place is not None and not place.startswith(".."))
    is_all = is_complete and opens is Opens.FOUND
    return KeptEntries(inside, frozenset(entry for entry, place in stay.items() if place not in inside), is_all)


def _stays(entry: str, place: str | None, places: LibraryPlaces, toolkit: Toolkit, opens: Opens) -> bool:
    """Return whether an entry of a file that finds all that it needs stays for what the file opens by name.

    The SDK's own folders are chosen for the libraries that the file is known to open, all others at hand stay.
    """
    if place is None or place not in places.folders:
        return not toolkit.gives_up(entry if place is None else place, opens)
    return opens is not Opens.FOUND or not place.startswith(_SDK_TOPS)


def kept_entries_note(tree: Tree, owner: Distribution, run_paths: Iterable[tuple[str, str]]) -> str:
    """Return a note that says how many entries of a wheel's run paths lead to folders of no package at hand.

    It is empty if none does. ``run_paths`` are those of the repaired files, each with the file's folder relative to
    site-packages.
    """
    assumed = (*sdk_folders(), *assumed_package_folders(tree))
    known = {file.folder for file in tree.files} | {folder.folder for folder in assumed}
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
