"""Finds ZIP headers and names that installers reject even though all programs agree on them (APPNOTE.TXT 6.3)."""

from __future__ import annotations

import posixpath
import re
import struct
import unicodedata
from collections import defaultdict
from typing import IO, TYPE_CHECKING, Final

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.wheels.member_compression import DEFLATED, STORED
from rocwheel.wheels.zip_headers import ZIP64, iter_extra_fields

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rocwheel.wheels.zip_headers import LocalHeader
    from rocwheel.wheels.zip_reader import ZipMember

_ENTRY: Final = struct.Struct("<4s6H3I5H2I")
_UNICODE_COMMENT: Final = 0x6375
_UNICODE_HEAD: Final = 5
_FLAGS: Final = {0: "encrypted", 5: "a patch", 6: "strongly encrypted"}
_STREAM: Final = 8
_UTF8: Final = 0x800
_NEWEST: Final = 63
_WIDE32, _WIDE16 = 0xFFFFFFFF, 0xFFFF
_OF_OWN_HEADER: Final = 2
_NAMED: Final = 10
_COMMENT: Final = "has a comment with control characters, which may hide another archive", "printable text"
_REMEDY: Final = "Pack the archive again, for example, with 'rocwheel repair'."


class CentralEntry(msgspec.Struct, frozen=True):
    """A central directory entry, before values that are too large for it are read from the ZIP64 field."""

    version: int
    flags: int
    extra: bytes
    comment: bytes
    narrow: tuple[int, ...]
    """Size, packed size, and offset. A local header has no offset."""
    disk: int
    length: int
    """The length that the entry declares, in bytes."""


def read_entries(file: IO[bytes], start: int, number: int) -> tuple[CentralEntry, ...]:
    """Read the entries of a central directory.

    The list is complete, because `zipfile` has already read the directory.
    """
    file.seek(start)
    return tuple(_read_entry(file) for _ in range(number))


def _read_entry(file: IO[bytes]) -> CentralEntry:
    _, _, version, flags, *_, packed_size, size, name, extra, comment, disk, _, _, offset = _ENTRY.unpack(
        file.read(_ENTRY.size)
    )
    file.read(name)
    length = _ENTRY.size + name + extra + comment
    return CentralEntry(version, flags, file.read(extra), file.read(comment), (size, packed_size, offset), disk, length)


def find_refused(
    path: Path, comment: bytes, members: Iterable[tuple[zipfile.ZipInfo, CentralEntry, LocalHeader]]
) -> tuple[InputError, ...]:
    """Return the problems in an archive's headers that installers reject; rewriting the archive fixes all of them."""
    faults = [
        (info.filename, InputError(f"{path}!{info.filename}", found, expected=expected, remedy=_REMEDY))
        for info, entry, header in members
        for found, expected in _member_faults(info, entry, header)
    ]
    if _may_be_archive(comment):
        found, expected = _COMMENT
        faults.append(("", InputError(path, found, expected=expected, remedy=_REMEDY)))
    return tuple(group_faults(path, faults))


def group_faults(path: Path | str, faults: Iterable[tuple[str, InputError]]) -> Iterator[InputError]:
    """Yield the errors about members, and combine equal errors into a single error about the archive.

    ``faults`` contains pairs of a member name and an error.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, InputError]]] = defaultdict(list)
    for name, error in faults:
        groups[error.found, error.expected, error.remedy].append((name, error))
    for (found, expected, remedy), group in groups.items():
        if len(group) == 1:
            yield group[0][1]
        else:
            names = first_of([name for name, _ in group], _NAMED)
            yield InputError(
                path, f"{count(len(group), 'member')} ({names}): {found}", expected=expected, remedy=remedy
            )


def _member_faults(info: zipfile.ZipInfo, entry: CentralEntry, header: LocalHeader) -> Iterator[tuple[str, str]]:
    for place, said, disk in (("own header", header, 0), ("directory entry", entry, entry.disk)):
        for found, expected in (*_header_faults(said), *_extra_faults(said, disk)):
            yield f"its {place} {found}", expected
    yield from _stream_faults(info, entry, header)
    if header.is_stream and info.compress_type == STORED:
        yield (
            "is stored, but its sizes follow its content, which programs that read a stream can't find",
            "sizes before the content",
        )
    if not header.name.isascii() and not header.flags & entry.flags & _UTF8:
        yield "its name is neither ASCII nor marked as UTF-8", "bit 11 of the flags to be set"
    if _may_be_archive(entry.comment):
        yield _COMMENT
    if info.filename.endswith("/"):
        if info.CRC:
            yield f"is a folder with checksum {info.CRC:08x}", "00000000"
        if header.is_stream and info.compress_size:
            yield (
                f"is a folder with {count(info.compress_size, 'packed byte')} and a data descriptor",
                "an empty folder",
            )
        if info.compress_type not in {STORED, DEFLATED}:
            yield f"is a folder compressed with method {info.compress_type}", "a stored folder"


def _stream_faults(info: zipfile.ZipInfo, entry: CentralEntry, header: LocalHeader) -> Iterator[tuple[str, str]]:
    if (entry.flags ^ header.flags) & _STREAM:
        yield "its own header and its directory entry disagree on bit 3 of the flags", "the same bit"
    if header.is_stream and info.compress_type == STORED:
        # A program that reads the archive as a stream can't find the end of the content.
        yield "is stored, but its sizes follow its content", "sizes in its own header, or a deflated member"


def _header_faults(said: LocalHeader | CentralEntry) -> Iterator[tuple[str, str]]:
    """Yield faults for flags and ZIP versions that installers don't support."""
    for bit, what in _FLAGS.items():
        if said.flags >> bit & 1:
            yield f"marks the member as {what}", f"bit {bit} of the flags to be clear"
    version = said.version & 0xFF
    if version > _NEWEST:
        yield f"requires version {version // 10}.{version % 10} of ZIP", "at most 6.3"


def _extra_faults(said: LocalHeader | CentralEntry, disk: int) -> Iterator[tuple[str, str]]:
    """Yield faults for extra fields that are truncated, repeated, or of the wrong length."""
    seen: set[int] = set()
    for kind, length, data in iter_extra_fields(said.extra):
        if len(data) < length:
            yield (
                f"has an extra field {kind:#06x} of {count(len(data), 'byte')}",
                f"the {length} bytes that it declares",
            )
        elif kind in seen:
            yield f"has the extra field {kind:#06x} twice", "each field only once"
        elif kind == ZIP64:
            needed = 8 * said.narrow.count(_WIDE32)
            lengths = {needed, needed + 4} if disk == _WIDE16 else {needed}
            # uv accepts a field that repeats both sizes of the local header.
            is_excused = len(said.narrow) == _OF_OWN_HEADER and not needed and data == struct.pack("<2Q", *said.narrow)
            if len(data) not in lengths and not is_excused:
                expected = (
                    f"{needed} bytes, based on the sizes"
                    if needed
                    else "no ZIP64 field, because the sizes fit in the header"
                )
                yield f"has a ZIP64 field of {count(len(data), 'byte')}", expected
        elif kind == _UNICODE_COMMENT and (not data or (data[0] == 1 and len(data) < _UNICODE_HEAD)):
            yield f"has an extra field {kind:#06x} of {count(len(data), 'byte')}", f"at least {_UNICODE_HEAD}"
        seen.add(kind)


def _may_be_archive(comment: bytes) -> bool:
    """Return whether a comment contains bytes that occur in ZIP records but never in text."""
    return any(1 <= byte <= 8 for byte in comment)


_DRIVE = re.compile(r"[A-Za-z]:")
_UNPRINTABLE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Character categories that uv rejects, or that end a line of RECORD for ``installer``."""
_LONGEST = 255


def outside_reason(member: str) -> str:
    """Return why installers reject a member's name or write it outside the environment; empty if the name is valid."""
    if member.startswith("/") or _DRIVE.match(member):
        return "an absolute path"
    if "\\" in member:
        return "a name with a backslash, which separates folders on some systems"
    if any(unicodedata.category(character) in _UNPRINTABLE for character in member):
        return "a name with a control character"
    if any(len(part.encode(errors="surrogateescape")) > _LONGEST for part in member.split("/")):
        return f"a name longer than {_LONGEST} bytes, which file systems don't support"
    if ".." in member.split("/"):
        return "a path that points outside the wheel"
    return "" if posixpath.normpath(member) == member else "a path that isn't normalized"


def refuse_outside(source: str, members: Iterable[ZipMember]) -> None:
    """Raise `InputError` for a member with a rejected name, or `ProblemsError` about ``source`` for several."""
    faults = [(member.source, why) for member in members if (why := outside_reason(member.name))]
    expected, remedy = "a path inside the environment", "Build the wheel again."
    raise_all(source, [InputError(place, why, expected=expected, remedy=remedy) for place, why in faults])
