"""Run path entries that a repair leaves since packages that are not at hand may have the folders that they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.installed.requirements import packages_elsewhere
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution, Tree

__all__ = ["kept_entries_note"]


def kept_entries_note(tree: Tree, owner: Distribution, run_paths: Iterable[tuple[str, str]]) -> str:
    """Tell how many entries of a wheel's run paths lead to folders of no package at hand; nothing if none does.

    ``run_paths`` are those of the repaired files, each with the file's folder relative to site-packages.
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
        f"kept {entries} run path entries in {files} files that lead to folders of packages not at hand, if to any: "
        f"give what the wheel requires --with to have only right ones stay ({others})"
    )


def _is_elsewhere(place: str | None, known: set[str]) -> bool:
    return bool(place) and place not in known and not str(place).startswith("..")
