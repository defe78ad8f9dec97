"""Tar archives (POSIX.1-2001 pax) as contents: headers, files and padding in sequence, never whole in memory."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.content.content import BytesContent, Content, SequenceContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["TarFile", "TarLink", "tar_content"]

_RECORD = tarfile.RECORDSIZE


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
    parts = [part for member in members for part in _parts(member, mtime)]
    size = sum(part.size for part in parts) + 2 * tarfile.BLOCKSIZE
    end = 2 * tarfile.BLOCKSIZE + -size % _RECORD
    return SequenceContent((*parts, BytesContent(bytes(end))))


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
