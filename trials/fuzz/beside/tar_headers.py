"""Headers of a tar read by hand by the places of their fields, and by tarfile, held against members of a package.

rocwheel's reader is made of tarfile's, within bounds: that one tells what the bounds break, and the reading by hand,
which has an answer for plain headers of POSIX and GNU alone, what both may have wrong.
"""

from __future__ import annotations

import io
import re
import tarfile
from typing import TYPE_CHECKING, NamedTuple

from trials.fuzz.harness import require, take_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["TarMember", "compare_tar"]

_BLOCK = 512
_OCTAL = re.compile(rb"([0-7]{1,11})[ \0]+")
_POSIX, _GNU = b"ustar\x0000", b"ustar  \0"
_KINDS = {b"0": "file", b"\0": "file", b"1": "file", b"2": "symlink", b"5": "directory"}
_LONG = {b"L", b"K"}
_PLAIN_PATH = re.compile(r"(?:(?!\.{1,2}(?:/|$))[A-Za-z0-9_.+-]{1,200}(?:/|$)){1,20}(?<!/)")
_MODE, _LINK_MODE = 0o777, 0o777


class TarMember(NamedTuple):
    """A member: its path without ``./`` and the slash at its end, and what tar has of it."""

    path: str
    kind: str
    mode: int
    size: int
    link: str
    """Where a symlink points to, or the path of the member that this one is another name of; empty for others."""
    content: bytes


class _DoubtError(Exception):
    """A tar that has no answer here."""


def compare_tar(members: Iterable[TarMember], data: bytes) -> None:
    """Require that tarfile, and the reading by hand where it has an answer, have the same members."""
    by_hand = _if_plain(data)
    own = take_all(members, by_hand)
    theirs = list(_of_library(data))
    require(own == theirs, f"members {own}, tarfile has {theirs}")
    require(by_hand is None or own == by_hand, f"members {own}, by hand they are {by_hand}")


def _if_plain(data: bytes) -> list[TarMember] | None:
    """Return the members by hand; none for a tar that has no answer, or that no package should have."""
    try:
        found = list(_by_hand(data))
    except _DoubtError:
        return None
    seen: set[str] = set()
    for member in found:
        is_known = member.kind != "file" or not member.link or member.link in seen
        if not _PLAIN_PATH.fullmatch(member.path) or not is_known or member.path in seen:
            return None
        seen.add(member.path)
    return found


def _of_library(data: bytes) -> Iterator[TarMember]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            kind = "symlink" if info.issym() else "directory" if info.isdir() else "file"
            content = tar.extractfile(info) if info.isreg() else None
            link = info.linkname if info.issym() else _plain(info.linkname) if info.islnk() else ""
            found = _member(info.name, kind, info.mode, content.read() if content else b"", link)
            yield from [found] if found.path else []


def _member(name: str, kind: str, mode: int, content: bytes, link: str) -> TarMember:
    bits = _LINK_MODE if kind == "symlink" else mode & _MODE
    return TarMember(_plain(name), kind, bits, len(content), link, content)


def _plain(name: str) -> str:
    return re.sub("^[.](/|$)", "", name).removesuffix("/")


def _by_hand(data: bytes) -> Iterator[TarMember]:
    """Yield the members. Raises `_DoubtError` at a header that is of no plain kind, or has fields of others."""
    position, names = 0, dict.fromkeys(_LONG, "")
    while any(header := data[position : position + _BLOCK]):
        _require_checksum(header)
        kind, size = header[156:157], _number(header[124:136])
        content = data[position + _BLOCK : position + _BLOCK + size]
        position += _BLOCK + -(-size // _BLOCK) * _BLOCK
        if position > len(data):
            raise _DoubtError
        if kind in _LONG:
            if header[257:265] != _GNU or names[kind]:
                raise _DoubtError
            names[kind] = _text(content)
            continue
        link = names[b"K"] or _text(header[157:257])
        found = _member(names[b"L"] or _name(header), _kind(header, size), _number(header[100:108]), content, "")
        names = dict.fromkeys(_LONG, "")
        if found.path:
            yield found._replace(link={b"2": link, b"1": _plain(link)}.get(kind, ""))
    if any(data[position:]) or len(data) - position < 2 * _BLOCK or len(data) % _BLOCK:
        raise _DoubtError


def _require_checksum(header: bytes) -> None:
    """Raise `_DoubtError` for a header whose sum, with blanks in its own place, is another than it says."""
    if len(header) < _BLOCK or sum(header) - sum(header[148:156]) + 8 * 0x20 != _number(header[148:156]):
        raise _DoubtError


def _kind(header: bytes, size: int) -> str:
    kind = header[156:157]
    ends_in_slash = _text(header[:100]).endswith("/")  # old tars have folders so
    has_size = size and kind not in {b"0", b"\0"}  # which some take for the size of bytes that follow
    if kind not in _KINDS or has_size or (ends_in_slash and kind != b"5"):
        raise _DoubtError
    return _KINDS[kind]


def _name(header: bytes) -> str:
    prefix = _text(header[345:500])
    if header[257:265] == _POSIX:
        return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])
    if header[257:265] != _GNU or any(header[345:500]):  # where GNU has times and maps
        raise _DoubtError
    return _text(header[:100])


def _number(field: bytes) -> int:
    match = _OCTAL.fullmatch(field)
    if match is None:
        raise _DoubtError
    return int(match[1], 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")
