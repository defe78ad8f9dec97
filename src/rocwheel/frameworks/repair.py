"""Run paths mended after the build, by the rule that the SDK's own packages follow: for those who can't link anew."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.run_paths import library_places, run_path_edit
from rocwheel.binary.elf import ElfKind
from rocwheel.binary.runpath import RunpathTag, plan_runpath
from rocwheel.distributions.content import FileContent
from rocwheel.distributions.patched_content import PatchedContent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.audit.run_paths import LibraryPlaces, SetRunpath
    from rocwheel.binary.elf import Elf
    from rocwheel.frameworks.assembly import DraftMember, WheelDraft

__all__ = ["repair_run_paths"]


def repair_run_paths(draft: WheelDraft, companions: Mapping[str, Elf], search: Sequence[str]) -> WheelDraft:
    """Return the wheel with the run path of every file minimal and right; files that are right stay as they are.

    ``search`` are folders in site-packages, in the order in which they are tried.
    """
    installed = {**companions, **{member.place: member.elf for member in draft.members if member.elf}}
    places = library_places(installed)
    members = tuple(_mended(member, places, search) for member in draft.members)
    return msgspec.structs.replace(draft, members=members)


def _mended(member: DraftMember, places: LibraryPlaces, search: Sequence[str]) -> DraftMember:
    elf = member.elf
    if elf is None or not elf.is_dynamic or elf.kind is not ElfKind.SHARED_OBJECT:
        return member
    tag = RunpathTag.RPATH if elf.rpath is not None and elf.runpath is None else RunpathTag.RUNPATH
    edit = run_path_edit(elf, posixpath.dirname(member.place), search, places, tag)
    if edit is None or not isinstance(member.content, FileContent):
        return member
    return _edited(member, elf, member.content, edit)


def _edited(member: DraftMember, elf: Elf, content: FileContent, edit: SetRunpath) -> DraftMember:
    with content.source.map() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    is_rpath = edit.tag is RunpathTag.RPATH
    rpath, runpath = (edit.value or None, None) if is_rpath else (None, edit.value or None)
    elf = msgspec.structs.replace(elf, rpath=rpath, runpath=runpath)
    return msgspec.structs.replace(member, content=PatchedContent(content.source, patch), elf=elf)
