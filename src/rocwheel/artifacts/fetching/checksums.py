"""Files of checksums, as sha256sum(1) writes and reads them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["CHECKSUM_FILES", "CHECKSUM_SUFFIXES", "MAX_CHECKSUMS_SIZE", "match_checksums", "parse_checksums"]

CHECKSUM_SUFFIXES = (".sha256sum", ".sha256")
"""What follows the name of a file in the name of that with its checksum."""
CHECKSUM_FILES = ("SHA256SUMS", "sha256sums.txt", "sha256sum.txt")
"""Names of files with the checksums of all files of a folder."""
MAX_CHECKSUMS_SIZE = 16 << 20
"""Bytes; a line for each of a hundred thousand files."""

_LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9A-Fa-f]{64})(?:[ \t]+\*?(?P<name>.+))?")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r"}
_BSD_LINE = re.compile(r"SHA256 ?\((?P<name>.+)\) ?= ?(?P<digest>[0-9A-Fa-f]{64})")


def parse_checksums(data: bytes, source: str, only: str = "") -> dict[str, str]:
    """Return the SHA-256 of files, in lower-case hexadecimal, by their names.

    ``only`` is the file that a digest without a name is of. Names keep their folders: `match_checksums` says which file
    one is. Empty lines and those that begin with ``#`` mean nothing. Raises `InputError` for any other line, and for
    two digests of one name.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, digest = _parse_line(text, only) or ("", "")
        if not name:
            expected = "a SHA-256 in hexadecimal and the name of a file"
            raise InputError(source, f"line {number} is {quoted(text)}", expected=expected)
        if found.setdefault(name, digest) != digest:
            raise InputError(source, f"line {number} has another checksum of {quoted(name)} than a line before")
    return found


def _parse_line(text: str, only: str) -> tuple[str, str] | None:
    match = _LINE.fullmatch(text) or _BSD_LINE.fullmatch(text)
    if match is None:
        return None
    name = match["name"] or only
    if match.groupdict().get("escaped"):
        name = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), name)
    return (posixpath.normpath(name) if name else ""), match["digest"].lower()


def match_checksums(listed: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the digests of those files of a folder, by their ``names`` in it, that a list has.

    The full name counts first. Lists are often made elsewhere: so a name with further folders in front counts as well,
    and one without its folders where no other file has the same last part; but never two with different digests.

    >>> match_checksums({"out/gfx906/x": "1", "gfx942/x": "2"}, ["gfx906/x", "gfx942/x"])
    {'gfx906/x': '1', 'gfx942/x': '2'}
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in listed:
        alike[posixpath.basename(name)].append(name)
    numbers = Counter(map(posixpath.basename, names))
    found: dict[str, str] = {}
    for name in names:
        base = posixpath.basename(name)
        near = [other for other in alike.get(base, ()) if _is_meant(other, name, is_lone=numbers[base] == 1)]
        digests = {listed[name]} if name in listed else {listed[other] for other in near}
        if len(digests) == 1:
            found[name] = digests.pop()
    return found


def _is_meant(listed: str, name: str, *, is_lone: bool) -> bool:
    return f"/{listed}".endswith(f"/{name}") or (is_lone and f"/{name}".endswith(f"/{listed}"))
