"""What users should know of a repaired wheel before they publish it: what is assumed, and whose ROCm it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.foundation.messages.counting import count, first_of
from rocwheel.linking.entries import is_build_folder, is_origin_relative, split_run_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution
    from rocwheel.repair.outcome import RepairedTree

__all__ = ["build_folders_note", "open_version_note", "toolkit_note"]

_OPEN = (
    "Requires-Dist: {0} allows any version, though its libraries are assumed to be those of ROCm 7: give {0} with "
    "--with, and --pin"
)
_OTHERS = "is for {}: paths to that stay, and none lead to the SDK's packages unless --toolkit sdk says so"
_KEPT = "{} the paths to libraries that are not at hand, in {}"
_BUILD = (
    "{} {}, as if on the machine that built it: another may have there what nothing else provides. Give what provides "
    "it with --with, or drop the entries with rocwheel runpath set"
)
_INSTEAD = "is for {}: {}. --toolkit sdk would lead to the SDK's packages instead, for every library that they have"


def open_version_note(requirement: str) -> str:
    """Return a note on a requirement that names no version."""
    return _OPEN.format(requirement)


def build_folders_note(run_paths: Iterable[str]) -> str:
    """Return a note on the folders of the building machine that repaired run paths keep; empty if there are none."""
    found = [[entry for entry in split_run_path(value) if _is_of_build(entry)] for value in run_paths]
    folders = dict.fromkeys(entry for entries in found for entry in entries)
    files = sum(map(bool, found))
    return _BUILD.format(count(files, "file searches", "files search"), first_of([*folders])) if files else ""


def _is_of_build(entry: str) -> bool:
    """Return whether an entry leads to a folder of the building machine; from ``$ORIGIN`` the way is to packages."""
    return is_build_folder(entry) and not is_origin_relative(entry)


def toolkit_note(repaired: RepairedTree, owner: Distribution) -> str:
    """Return a note on what a wheel leaves to the machine's toolkits; empty if it leaves nothing."""
    reason = repaired.toolkits[owner.source].reason
    found = repaired.kept_for_system(owner)
    if not found:
        return _OTHERS.format(reason) if reason else ""
    folders = dict.fromkeys(place for finds in found.values() for one in finds for place in one.place.split(":"))
    kept = _KEPT.format(count(len(found), "file keeps", "files keep"), first_of([*folders]))
    return _INSTEAD.format(reason, kept) if reason else f"as asked, {kept}"
