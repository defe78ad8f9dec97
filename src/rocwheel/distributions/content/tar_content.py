"""Tar archives (POSIX.1-2001 pax) as contents: headers, files and padding in sequence, never whole in memory."""

from __future__ import annotations

import tarfile
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec
from zlib_ng import zlib_ng

from rocwheel.distributions.content.content import BytesContent, Content, SequenceContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["TarFile", "TarLink", "tar_content"]

_RECORD = tarfile.RECORDSIZE
_JOINT_EVERY = 32
"""About how many members lie between two joints: with files of a usual size, some megabytes."""


class TarFile(msgspec.Struct, frozen=True):
    """A regular file of a tar."""

    path: str
    mode: int
    content: Content


class TarLink(msgspec.Struct, frozen=True):
    """A symlink of a tar, with its raw text."""

    path: str
    text: str


def tar_content(members: Iterable[TarFile | TarLink], *, mtime: int) -> SequenceContent:
    """Return the bytes of a tar with these members, owned by root and dated ``mtime`` seconds after 1970."""
    groups = [(member.path, tuple(_parts(member, mtime))) for member in members]
    parts = [part for _, group in groups for part in group]
    size = sum(part.size for part in parts) + 2 * tarfile.BLOCKSIZE
    end = 2 * tarfile.BLOCKSIZE + -size % _RECORD
    return SequenceContent((*parts, BytesContent(bytes(end))), _joints(groups))


def _joints(groups: Sequence[tuple[str, tuple[Content, ...]]]) -> tuple[int, ...]:
    """Return where members begin, but the first, whose path says so: no other member has a say in that."""
    starts = accumulate((sum(part.size for part in group) for _, group in groups), initial=0)
    found = (start for start, (path, _) in zip(starts, groups, strict=False) if _is_joint(path))
    return tuple(start for start in found if start)


def _is_joint(path: str) -> bool:
    return zlib_ng.crc32(path.encode(errors="surrogateescape")) % _JOINT_EVERY == 0


def _parts(member: TarFile | TarLink, mtime: int) -> Iterator[Content]:
    info = tarfile.TarInfo(member.path)
    info.mtime = mtime
    if isinstance(member, TarLink):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, member.text, 0o777
        yield BytesContent(info.tobuf(tarfile.PAX_FORMAT))
        return
    size = member.content.size
    info.size, info.mode = size, member.mode
    yield BytesContent(info.tobuf(tarfile.PAX_FORMAT))
    yield member.content
    if padding := -size % tarfile.BLOCKSIZE:
        yield BytesContent(bytes(padding))
