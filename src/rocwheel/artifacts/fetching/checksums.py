"""Files of checksums, as sha256sum(1) writes and reads them."""

from __future__ import annotations

import re

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.quoting import quoted

__all__ = ["CHECKSUM_FILES", "CHECKSUM_SUFFIXES", "MAX_CHECKSUMS_SIZE", "parse_checksums"]

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

    ``only`` is the file that a digest without a name is of. Names with folders count by their last part, since files
    of checksums are often made elsewhere. Empty lines and those that begin with ``#`` mean nothing. Raises `InputError`
    for any other line, and for two digests of one name.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
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
    return name.rpartition("/")[2], match["digest"].lower()
