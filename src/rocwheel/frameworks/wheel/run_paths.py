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
from rocwheel.installed.requirements import release_folders
from rocwheel.installed.tree import Distribution, InstalledFile, Tree
from rocwheel.linking.entries import folders_beyond, resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath, run_path_edit

if TYPE_CHECKING:
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.frameworks.wheel.draft import DraftMember, WheelDraft

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


def repair_run_paths(
    draft: WheelDraft, companions: Tree, intended: IntendedEntries, requires: Sequence[str] = ()
) -> WheelDraft:
    """Return the wheel with the run path of every file minimal and right; files that are right stay as they are.

    ``companions`` are the packages that the wheel is installed with, in addition to those of the SDK. Intended
    entries stay, at the end, though no package at hand has the folders that they lead to. An RPATH becomes a RUNPATH
    that leads beyond the wheel's release: the wheel, and what it ``requires`` in one exact version. It stays one where
    libraries that are not at hand may inherit it.
    """
    owner = Distribution(name=draft.name.distribution, version="", source="", dist_info="", requires=(*requires,))
    files = (*companions.files, *map(_installed, draft.members))
    together = Tree((*companions.distributions, owner), files)
    release = release_folders(together, owner)
    sdk = assumed_sdk_folders(together)
    machines = {member.elf.machine for member in draft.members if member.elf is not None}
    places = {machine: places_for_machine(together, sdk, machine) for machine in machines}
    surroundings = {machine: _Surroundings(found, intended, release) for machine, found in places.items()}
    members = tuple(
        member if member.elf is None else _repaired(member, member.elf, surroundings[member.elf.machine])
        for member in draft.members
    )
    return msgspec.structs.replace(draft, members=members)


def _installed(member: DraftMember) -> InstalledFile:
    return InstalledFile(
        path=member.place, distribution="", source=member.place, size=member.content.size, elf=member.elf
    )


class _Surroundings(msgspec.Struct, frozen=True):
    """What the run path of a file depends on."""

    places: LibraryPlaces
    intended: IntendedEntries
    release: frozenset[str]
    """The top-level folders of the wheel's release."""

    def edit(self, elf: Elf, folder: str) -> SetRunpath | None:
        """Return the edit that makes the run path of a file in ``folder`` right; None if it is right already."""
        tag = elf.run_path_tag or RunpathTag.RUNPATH
        edit = self._edit_of(elf, folder, tag)
        value = elf.run_path if edit is None else edit.value
        is_within = not folders_beyond(self.release, value, folder)
        stays = is_within or tag is RunpathTag.RUNPATH or self.places.leads_beyond(value, folder)
        return edit if stays else self._edit_of(elf, folder, RunpathTag.RUNPATH)

    def _edit_of(self, elf: Elf, folder: str, tag: RunpathTag) -> SetRunpath | None:
        kept = KeptEntries(intended=self.intended.of(elf.run_path, folder, self.places.folders))
        return run_path_edit(elf, folder, self.intended.search, self.places, tag, kept)


def _repaired(member: DraftMember, elf: Elf, surroundings: _Surroundings) -> DraftMember:
    if not (elf.is_loadable and elf.is_shared_library):
        return member
    edit = surroundings.edit(elf, posixpath.dirname(member.place))
    if edit is None or not isinstance(member.content, FileContent):
        return member
    return _edited(member, elf, member.content, edit)


def _edited(member: DraftMember, elf: Elf, content: FileContent, edit: SetRunpath) -> DraftMember:
    with content.source.view() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    return msgspec.structs.replace(member, content=PatchedContent(content.source, patch), elf=edit.applied_to(elf))
