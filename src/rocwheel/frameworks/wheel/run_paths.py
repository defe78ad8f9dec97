"""Run paths mended after the build, by the rule that the SDK's own packages follow: for those who can't link anew."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.runpath.edit import plan_runpath
from rocwheel.distributions.content.content import FileContent, PatchedContent
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import LibraryPlaces, SetRunpath, library_places, run_path_edit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.frameworks.wheel.draft import DraftMember, WheelDraft

__all__ = ["repair_run_paths"]


class _Places(msgspec.Struct, frozen=True):
    """Where run paths may lead."""

    libraries: LibraryPlaces
    search: Sequence[str]
    system: Collection[str]

    def is_meant(self, entry: str, folder: str) -> bool:
        """Tell whether an entry of a file in ``folder`` stays, though no package at hand has what it leads to."""
        place = resolve_entry(entry, folder)
        return entry in self.system or (place in self.search and place not in self.libraries.folders)


def repair_run_paths(
    draft: WheelDraft, installed: Iterable[str], search: Sequence[str], system: Collection[str] = ()
) -> WheelDraft:
    """Return the wheel with the run path of every file minimal and right; files that are right stay as they are.

    ``installed`` are the libraries of the packages beside it, and ``search`` folders in the order in which they are
    tried; both relative to site-packages. Of the entries that are there, those that lead to ``search`` or are among
    ``system``, absolute folders, are meant: they stay, at the end.
    """
    own = [member.place for member in draft.members if member.elf]
    places = _Places(library_places([*installed, *own]), search, system)
    return msgspec.structs.replace(draft, members=tuple(_mended(member, places) for member in draft.members))


def _mended(member: DraftMember, places: _Places) -> DraftMember:
    elf = member.elf
    if elf is None or not (elf.is_loadable and elf.is_shared_library):
        return member
    edit = _edit(elf, posixpath.dirname(member.place), places)
    if edit is None or not isinstance(member.content, FileContent):
        return member
    return _edited(member, elf, member.content, edit)


def _edit(elf: Elf, folder: str, places: _Places) -> SetRunpath | None:
    tag = elf.run_path_tag or RunpathTag.RUNPATH
    entries = split_run_path(elf.run_path)
    meant = [entry for entry in entries if places.is_meant(entry, folder)]
    rest = [entry for entry in entries if entry not in meant]
    edit = run_path_edit(_with_run_path(elf, ":".join(rest), tag), folder, places.search, places.libraries, tag)
    if edit is None and len(meant) == len(set(meant)):
        return None
    return SetRunpath(":".join([*(split_run_path(edit.value) if edit else rest), *dict.fromkeys(meant)]), tag)


def _with_run_path(elf: Elf, value: str, tag: RunpathTag) -> Elf:
    is_rpath = tag is RunpathTag.RPATH
    return msgspec.structs.replace(elf, **{"rpath" if is_rpath else "runpath": value or None})


def _edited(member: DraftMember, elf: Elf, content: FileContent, edit: SetRunpath) -> DraftMember:
    with content.source.map() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    elf = _with_run_path(msgspec.structs.replace(elf, rpath=None, runpath=None), edit.value, edit.tag)
    return msgspec.structs.replace(member, content=PatchedContent(content.source, patch), elf=elf)
