"""The members of a planned wheel: their order, how each is added to what packs them, and the files of metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.distributions.formats.metadata.metadata import metadata_files
from rocwheel.packages.building.contents import edited_content, is_compressed, member_content, member_mode
from rocwheel.packages.plan import FileMember, Member, PlannedWheel, TarMember
from rocwheel.targets.declaration import DECLARATION_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from rocwheel.distributions.content.content import Content
    from rocwheel.distributions.packing.stream_codec import StreamFormat

__all__ = ["MemberTarget", "PlacedMember", "add_member", "planned_size", "wheel_members", "wheel_metadata"]


class MemberTarget(Protocol):
    """What members are added to, such as an open wheel."""

    def add(self, name: str, mode: int, content: Content) -> None:
        """Add a member, which is deflated if that is worthwhile."""

    def add_stored(self, name: str, mode: int, content: Content) -> None:
        """Add a member that is compressed already."""

    def add_encoded(self, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Add a member that holds the content compressed as a stream of its own."""


class PlacedMember(msgspec.Struct, frozen=True):
    """A member, and its name and permission bits in the wheel."""

    name: str
    mode: int
    member: Member


def wheel_members(wheel: PlannedWheel) -> list[PlacedMember]:
    """Return all members of a wheel but its metadata, in their order in it: the largest first, license texts last.

    The small members at the end keep all workers busy to the last moment.
    """
    members = sorted(wheel.members, key=lambda member: (-planned_size([member]), member.path))
    licenses = f"{wheel.name.dist_info}/licenses"
    return [
        *(PlacedMember(member.path, member_mode(member), member) for member in members),
        *(PlacedMember(f"{licenses}/{text.path}", 0o644, text) for text in wheel.licenses),
    ]


def add_member(
    target: MemberTarget, placed: PlacedMember, *, mtime: int, executor: Executor, is_cached: bool = False
) -> None:
    """Add a member to a wheel; ``mtime`` dates the members of a tar, ``executor`` compresses device code.

    Where a cache may have the member, its edit is planned only if it has not. Raises `InputError` for a file that can't
    be read or edited.
    """
    member = placed.member
    if is_cached and isinstance(member, FileMember) and (edited := edited_content(member)):
        target.add(placed.name, placed.mode, edited)
        return
    content = member_content(member, mtime=mtime, executor=executor)
    if isinstance(member, TarMember) and member.compression != "none":
        target.add_encoded(placed.name, placed.mode, content, member.compression)
    else:
        add = target.add_stored if is_compressed(member) else target.add
        add(placed.name, placed.mode, content)


def planned_size(members: Sequence[Member]) -> int:
    """Return the number of bytes that members come from, before edits."""
    return sum(_source_size(member) for member in members)


def _source_size(member: Member) -> int:
    if isinstance(member, FileMember):
        return member.source.size
    if isinstance(member, TarMember):
        return sum(entry.file.source.size for entry in member.entries if entry.file)
    return 0


def wheel_metadata(wheel: PlannedWheel) -> dict[str, bytes]:
    """Return the files of ``.dist-info`` but for license texts and RECORD, by their names there."""
    texts = {DECLARATION_NAME: wheel.declaration, **wheel.info_texts}
    return metadata_files(
        wheel.metadata,
        wheel.name.tag,
        is_purelib=wheel.is_purelib,
        entry_points={"console_scripts": wheel.console_scripts} if wheel.console_scripts else {},
        others={name: text.encode() for name, text in texts.items() if text},
    )
