"""Run paths that are repaired after the build, for those who can't link again; for the rule see `rocwheel.linking`."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.distributions.content.content import FileContent, PatchedContent
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import KeptEntries, library_places, run_path_edit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.frameworks.wheel.draft import DraftMember, WheelDraft
    from rocwheel.linking.run_path_choice import LibraryPlaces, SetRunpath

__all__ = ["MeantEntries", "repair_run_paths"]


class MeantEntries(msgspec.Struct, frozen=True):
    """The run path entries that a wheel's description and its builder ask for."""

    search: Sequence[str]
    """Folders relative to site-packages, in the order in which they are tried."""
    system: Collection[str] = ()
    """Entries as they are spelled, such as ``/opt/rocm/lib``."""

    def of(self, run_path: str | None, folder: str, installed: Collection[str] = ()) -> frozenset[str]:
        """Return the entries that are meant of the run path of a file in ``folder``.

        Those that lead to a folder of ``search`` count unless it is ``installed``.
        """
        searched = set(self.search) - set(installed)
        entries = split_run_path(run_path)
        return frozenset(e for e in entries if e in self.system or resolve_entry(e, folder) in searched)


def repair_run_paths(draft: WheelDraft, installed: Iterable[str], meant: MeantEntries) -> WheelDraft:
    """Return the wheel with the run path of every file minimal and right; files that are right stay as they are.

    ``installed`` are the libraries of the packages that the wheel is installed with, relative to site-packages. The
    entries that are meant stay, at the end, though no package at hand has the folders that they lead to.
    """
    places = library_places([*installed, *(member.place for member in draft.members if member.elf)])
    members = tuple(_repaired(member, places, meant) for member in draft.members)
    return msgspec.structs.replace(draft, members=members)


def _repaired(member: DraftMember, places: LibraryPlaces, meant: MeantEntries) -> DraftMember:
    elf = member.elf
    if elf is None or not (elf.is_loadable and elf.is_shared_library):
        return member
    tag = elf.run_path_tag or RunpathTag.RUNPATH
    folder = posixpath.dirname(member.place)
    kept = KeptEntries(meant=meant.of(elf.run_path, folder, places.folders))
    edit = run_path_edit(elf, folder, meant.search, places, tag, kept)
    if edit is None or not isinstance(member.content, FileContent):
        return member
    return _edited(member, elf, member.content, edit)


def _edited(member: DraftMember, elf: Elf, content: FileContent, edit: SetRunpath) -> DraftMember:
    with content.source.map() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    return msgspec.structs.replace(member, content=PatchedContent(content.source, patch), elf=edit.applied_to(elf))
