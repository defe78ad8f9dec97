"""What a hostile archive may hold, whatever its format: links that lead out, devices, names, bombs."""

from __future__ import annotations

import io
import tarfile
from typing import NamedTuple

__all__ = ["LONG_NAME", "MARKUP", "MEMBERS", "NEWLINE", "NOTHING", "Member", "tar_of"]

NOTHING = "nothing hostile"
"""What every command has to take: else it would refuse the others for no reason of theirs."""
NEWLINE = "two\nlines"
MARKUP = "<script>alert(1)</script>[red]\x1b[31m&amp;"
LONG_NAME = "/".join("n" * 199 for _ in range(20)) + "/" + "n" * 96
"""4,096 bytes: one more than the longest path of Linux."""


class Member(NamedTuple):
    """One member of an archive, by its path below the folder that the format asks for."""

    name: str
    data: bytes = b"x"
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o644

    def info(self, prefix: str) -> tarfile.TarInfo:
        """Return the header of this member in a tar."""
        info = tarfile.TarInfo(self.name if self.name.startswith("/") else prefix + self.name)
        info.type, info.linkname, info.mode = self.kind, self.link, self.mode
        info.size = len(self.data) if self.kind == tarfile.REGTYPE else 0
        return info


def _link(name: str, target: str) -> Member:
    return Member(name, kind=tarfile.SYMTYPE, link=target)


MEMBERS: dict[str, list[Member]] = {
    NOTHING: [],
    "a link out": [_link("out", "../" * 30 + "etc/passwd")],
    "an absolute link": [_link("out", "/etc/passwd")],
    "a file behind a link out": [_link("out", "../" * 30 + "OUTSIDE"), Member("out/x")],
    "a file behind an absolute link": [_link("out", "/OUTSIDE"), Member("out/x")],
    "a link to itself": [_link("self", "self")],
    "a hard link out": [Member("hard", kind=tarfile.LNKTYPE, link="../" * 30 + "etc/passwd")],
    "a device": [Member("device", kind=tarfile.CHRTYPE)],
    "a pipe": [Member("pipe", kind=tarfile.FIFOTYPE)],
    "a newline in a name": [Member(NEWLINE)],
    "markup in a name": [Member(MARKUP)],
    "a name of 4,096 bytes": [Member(LONG_NAME)],
    "a part of a name of 300 bytes": [Member("p" * 300)],
    "names that differ in case": [Member("case.txt"), Member("CASE.txt")],
    "look-alikes": [Member("apple"), Member("\u0430pple"), Member("e\u0301"), Member("\u00e9")],
    "a name of bytes that are no text": [Member("bytes-\udcff\udcfe")],
    "a right-to-left name": [Member("safe\u202egnp.so")],
    "a name twice": [Member("twice", b"one"), Member("twice", b"two")],
    "a file below a file": [Member("below"), Member("below/x")],
    "a set-user-id program": [Member("suid", mode=0o6755)],
    "a name that climbs": [Member("../../../climbed")],
    "an absolute name": [Member("/OUTSIDE/absolute")],
}


def tar_of(prefix: str, members: list[Member], first: list[Member]) -> bytes:
    """Return a tar of members below ``prefix``, after those that the format asks for."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
        for member in first:
            tar.addfile(member.info(""), io.BytesIO(member.data))
        for member in members:
            tar.addfile(member.info(prefix), io.BytesIO(member.data))
    return data.getvalue()
