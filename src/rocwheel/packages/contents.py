"""The bytes of planned members: edits applied to mapped files while they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.alias_library import make_alias_library
from rocwheel.binary.exec_stub import make_exec_stub
from rocwheel.binary.runpath import ElfPatch, plan_runpath
from rocwheel.distributions.content import BytesContent, Content, FileContent
from rocwheel.distributions.patched_content import PatchedContent
from rocwheel.distributions.tar_content import TarFile, TarLink, tar_content
from rocwheel.packages.plan import AliasMember, FileMember, Member, StubMember, TarMember, TextMember

if TYPE_CHECKING:
    from rocwheel.audit.run_paths import SetRunpath
    from rocwheel.packages.plan import TarEntry

__all__ = ["member_content", "member_mode"]


def member_content(member: Member, *, mtime: int) -> Content:
    """Return the bytes of a member; ``mtime`` dates the members of a tar.

    Raises `rocwheel.errors.InputError` for a file that can't be read or edited.
    """
    match member:
        case FileMember():
            return _file_content(member)
        case StubMember():
            return BytesContent(make_exec_stub(member.machine, member.target))
        case AliasMember():
            return BytesContent(make_alias_library(member.soname, member.machine))
        case TextMember():
            return BytesContent(member.text.encode())
        case TarMember():
            return tar_content(map(_tar_member, member.entries), mtime=mtime)


def member_mode(member: Member) -> int:
    """Return the permission bits of a member."""
    if isinstance(member, FileMember):
        return member.mode
    return 0o755 if isinstance(member, StubMember | AliasMember) else 0o644


def _file_content(member: FileMember) -> Content:
    if member.run_path is None:
        return FileContent(member.source)
    patch = _plan_patch(member, member.run_path)
    return FileContent(member.source) if patch.is_identity else PatchedContent(member.source, patch)


def _plan_patch(member: FileMember, edit: SetRunpath) -> ElfPatch:
    with member.source.map() as data:
        return plan_runpath(data, edit.value, edit.tag, name=f"{member.artifact}: {member.origin}")


def _tar_member(entry: TarEntry) -> TarFile | TarLink:
    if entry.file is not None:
        return TarFile(entry.path, entry.mode, _file_content(entry.file))
    return TarLink(entry.path, entry.link or "")
