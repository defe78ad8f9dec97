"""The ways by which the loader may find a library: certain ones, and folders of users' machines that may have it.

A library is found for sure in the wheel itself, in a package that the wheel requires and that is at hand, and among the
libraries that every system has. Any other folder of a run path may have it: a folder of the host such as
``/opt/rocm/lib``, and one of packages that are not at hand, not required, or that share the folder with others.

Two kinds of folders have nothing more: those of entries that are proved to lead nowhere
(`rocwheel.linking.entries.leads_nowhere`), and those that a package at hand has for itself (`own_folders`).
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.linking.entries import is_origin_relative, leads_nowhere
from rocwheel.linking.loader import How, LoaderStop
from rocwheel.linking.tree_disk import SITE
from rocwheel.repair.comparing.own_folders import is_own_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.audit.subject import Process, Subject

__all__ = ["Ways", "find_ways", "folder_words", "inheritable_folders", "opened_folders"]

_HWCAPS = "/glibc-hwcaps/"
_REMEMBERED = 1 << 14
"""Folders that are remembered: a library of a long chain has the same ones asked for each name that it lacks."""


class Ways(msgspec.Struct, frozen=True):
    """Where one object of a process may find one library."""

    is_sure: bool
    folders: dict[str, str]
    """Absolute folders that may have it, in the loader's order, each with its words (`folder_words`).

    Those behind a sure place don't count.
    """

    def keep(self, before: Ways) -> bool:
        """Return whether everything that was found before is found, whichever of the folders have the library."""
        return self.is_sure or (not before.is_sure and before.folders.keys() <= self.folders.keys())


def find_ways(subject: Subject, process: Process, requester: int, name: str, sure: Collection[str]) -> Ways:
    """Return where an object of a process may find a library, whatever was loaded before.

    ``sure`` are the names of the distributions that are installed with the wheel for sure.
    """
    elf = process.file.elf
    machine = elf.machine if elf else 0
    folders: dict[str, str] = {}
    for how, entry, path in process.loader.candidates(name, requester):
        found = subject.disk.find(path, machine)
        if isinstance(found, LoaderStop):
            return Ways(is_sure=False, folders=folders)
        if found is not None and (how is How.PATH or subject.provider_of(found) in sure):
            return Ways(is_sure=True, folders=folders)
        folder = _folder(path)
        if folder not in folders and (
            found is not None or not (_is_dead(entry, folder) or is_own_folder(subject, folder))
        ):
            folders[folder] = folder_words(entry, folder)
    return Ways("/" not in name and subject.system.find(name, machine) is not None, folders)


def opened_folders(process: Process, requester: int) -> dict[str, str]:
    """Return the folders in which an object of a process looks for whatever it opens by name, each with its words."""
    return _folders(process.loader.candidates("any", requester))


def inheritable_folders(process: Process, requester: int) -> dict[str, str]:
    """Return the folders, each with its words, in which everything looks that an object of a process has loaded."""
    return _folders(found for found in process.loader.candidates("any", requester) if found[0] is How.RPATH)


def folder_words(entry: str, folder: str) -> str:
    """Return how messages name a folder that a run path entry leads to.

    That is its place in site-packages, else the entry itself: where packages are installed is only assumed.
    """
    inside = folder.removeprefix(f"{SITE}/")
    return entry if inside == folder or "$" in inside else inside


def _folders(candidates: Iterable[tuple[How, str, str]]) -> dict[str, str]:
    found = [(entry, _folder(path)) for _, entry, path in candidates]
    alive = [(entry, folder) for entry, folder in found if not _is_dead(entry, folder)]
    return {folder: folder_words(entry, folder) for entry, folder in reversed(alive)}


@lru_cache(maxsize=_REMEMBERED)
def _is_dead(entry: str, folder: str) -> bool:
    """Return whether an entry, which led the loader to a folder, is proved to lead to no library."""
    place = posixpath.relpath(folder, SITE)
    return leads_nowhere(f"$ORIGIN/{place}" if is_origin_relative(entry) else entry, "")


def _folder(path: str) -> str:
    return _outer(posixpath.dirname(path))


@lru_cache(maxsize=_REMEMBERED)
def _outer(folder: str) -> str:
    """Return the folder that a run path entry leads to, of which this one may be a subfolder for newer processors."""
    return posixpath.normpath(folder.partition(_HWCAPS)[0])
