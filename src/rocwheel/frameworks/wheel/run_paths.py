"""Run paths that are repaired after the build, for those who can't link again; for the rule see `rocwheel.linking`."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.distributions.content.content import FileContent, PatchedContent
from rocwheel.installed.library_places import assumed_sdk_folders, places_for_machine
from rocwheel.installed.tree import InstalledFile
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import KeptEntries, run_path_edit

if TYPE_CHECKING:
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.frameworks.wheel.draft import DraftMember, WheelDraft
    from rocwheel.installed.tree import Tree
    from rocwheel.linking.run_path_choice import LibraryPlaces, SetRunpath

__all__ = ["IntendedEntries", "repair_run_paths"]


class IntendedEntries(msgspec.Struct, frozen=True):
    """The run path entries that a wheel's description and its builder ask for."""

    search: Sequence[str]
    """Folders relative to site-packages, in the order in which they are tried."""
    system: Collection[str] = ()
    """Entries as they are spelled, such as ``/opt/rocm/lib``."""

    def of(self, run_path: str | None, folder: str, installed: Collection[str] = ()) -> frozenset[str]:
        """Return the intended entries of the run path of a file in ``folder``.

        Those that lead to a folder of ``search`` count unless it is ``installed``.
        """
        searched = set(self.search) - set(installed)
        entries = split_run_path(run_path)
        return frozenset(e for e in entries if e in self.system or resolve_entry(e, folder) in searched)


def repair_run_paths(draft: WheelDraft, companions: Tree, intended: IntendedEntries) -> WheelDraft:
    """Return the wheel with the run path of every file minimal and right; files that are right stay as they are.

    ``companions`` are the packages that the wheel is installed with, in addition to those of the SDK. Intended
    entries stay, at the end, though no package at hand has the folders that they lead to.
    """
    files = (*companions.files, *map(_installed, draft.members))
    together = msgspec.structs.replace(companions, files=files)
    sdk = assumed_sdk_folders(together)
    machines = {member.elf.machine for member in draft.members if member.elf is not None}
    places = {machine: places_for_machine(together, sdk, machine) for machine in machines}
    members = tuple(
        member if member.elf is None else _repaired(member, member.elf, places[member.elf.machine], intended)
        for member in draft.members
    )
    return msgspec.structs.replace(draft, members=members)


def _installed(member: DraftMember) -> InstalledFile:
    return InstalledFile(
        path=member.place, distribution="", source=member.place, size=member.content.size, elf=member.elf
    )


def _repaired(member: DraftMember, elf: Elf, places: LibraryPlaces, intended: IntendedEntries) -> DraftMember:
    if not (elf.is_loadable and elf.is_shared_library):
        return member
    tag = elf.run_path_tag or RunpathTag.RUNPATH
    folder = posixpath.dirname(member.place)
    kept = KeptEntries(intended=intended.of(elf.run_path, folder, places.folders))
    edit = run_path_edit(elf, folder, intended.search, places, tag, kept)
    if edit is None or not isinstance(member.content, FileContent):
        return member
    return _edited(member, elf, member.content, edit)


def _edited(member: DraftMember, elf: Elf, content: FileContent, edit: SetRunpath) -> DraftMember:
    with content.source.view() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    return msgspec.structs.replace(member, content=PatchedContent(content.source, patch), elf=edit.applied_to(elf))
