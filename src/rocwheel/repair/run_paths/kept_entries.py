"""Which run path entries a repair keeps, though no package at hand has what they lead to.

A user's machine may have it: a toolkit of the system (``/opt/rocm/lib``, ``/usr/local/cuda/lib64``), or a package that
is not at hand or shares a folder with others. So every entry stays that is not proved to lead nowhere, unless the file
can do without: it finds all that it needs for sure, and opens nothing by name at run time. That is judged by what is at
hand; once it is known what the repaired wheel requires, `rocwheel.repair.run_paths.safe_edits` has the last word.

A file that opens libraries by name keeps no entries to the machine's ROCm or CUDA, if a user says that the SDK's
packages take their place and if it finds all that it needs for sure. Folders of no toolkit stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.messages.counting import count
from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.linking.entries import leads_nowhere, resolve_entry, split_run_path
from rocwheel.linking.known.sdk_layout import sdk_folders
from rocwheel.linking.known.toolkits import is_toolkit_folder
from rocwheel.linking.run_path_choice import KeptEntries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.linking.run_path_choice import LibraryPlaces

__all__ = ["entries_to_keep", "kept_entries_note"]


def entries_to_keep(
    file: InstalledFile, places: LibraryPlaces, *, is_complete: bool, replaces_system: bool = False
) -> KeptEntries:
    """Return what stays of a file's run path; for the rule see the module.

    ``is_complete``: whether the file finds all that it needs for sure. ``replaces_system``: whether the SDK's packages
    take the place of the toolkits on a machine (`Toolkit.replaces_system`).
    """
    is_opener = file.elf is not None and file.elf.imports_dlopen
    if is_complete and not is_opener:
        return KeptEntries()
    entries = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
    led_to = {entry: places.resolve(entry, file.folder) for entry in entries}
    inside = frozenset(place for place in led_to.values() if place is not None and not place.startswith(".."))
    others = [entry for entry, place in led_to.items() if place not in inside]
    stay = [entry for entry in others if not (is_complete and replaces_system and is_toolkit_folder(entry))]
    return KeptEntries(inside, frozenset(stay))


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
