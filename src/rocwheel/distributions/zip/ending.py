"""The records at the end of a ZIP archive, by which programs find its directory: all have to name the same one.

`zipfile` goes by the record for large archives where there is one, and shifts the directory so that it ends right
before these records. Other programs go by the last record where it doesn't say "look in the other", and believe its
offset (APPNOTE.TXT 6.3, sections 4.3.14 to 4.3.16).
"""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.remedy import AGAIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.distributions.zip.local_header import ReadAt

__all__ = ["Directory", "require_whole_end"]

_END: Final = struct.Struct("<4s4H2IH")
_END64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64: Final = struct.Struct("<4sIQI")
_LONGEST_COMMENT: Final = 0xFFFF
_SIGNATURE: Final = b"PK\5\6"


class _Counts(msgspec.Struct, frozen=True):
    """What a record says of the directory: its disk, the one it starts on, entries on that, entries, size, offset."""

    disk: int
    first_disk: int
    number_here: int
    number: int
    length: int
    start: int


_WIDTHS: Final = (16, 16, 16, 16, 32, 32)
"""Bits of each field of `_Counts` in the last record; all of them set mean that the other record has it."""


class Directory(msgspec.Struct, frozen=True):
    """The directory that was read."""

    number: int
    """Of its entries."""
    start: int
    length: int
    """By its entries. `zipfile` cuts off what the last claims to have beyond the directory."""


def require_whole_end(path: Path, directory: Directory, size: int, read_at: ReadAt) -> None:
    """Raise `InputError` unless the directory is as all its records say, and the last is the end of the file."""
    start_of_tail, tail, at = _find_end(size, read_at)
    *fields, comment = _END.unpack_from(tail, at)[1:]
    behind = len(tail) - at - _END.size - comment
    if behind:
        raise InputError(path, f"{behind} bytes behind its end", expected="none", remedy=AGAIN)
    _require_one_end(path, tail, at)
    end = _Counts(*fields)
    large = _large_counts(path, tail[:at], start_of_tail)
    _require_agreeing(path, end, large)
    _require_true(path, large or end, directory)


def _find_end(size: int, read_at: ReadAt) -> tuple[int, bytes, int]:
    """Return where the last bytes of the file begin, them, and where the last record is in them for `zipfile`."""
    longest = _END.size + _LOCATOR64.size + _END64.size + _LONGEST_COMMENT
    start = max(size - longest, 0)
    tail = read_at(size - start, start)
    if tail[-_END.size :].startswith(_SIGNATURE) and tail.endswith(b"\0\0"):
        return start, tail, len(tail) - _END.size
    at = tail.rfind(_SIGNATURE)
    if at < 0 or len(tail) - at < _END.size:
        msg = "its end is not where it was"
        raise zipfile.BadZipFile(msg)
    return start, tail, at


def _require_one_end(path: Path, tail: bytes, last: int) -> None:
    """Raise `InputError` where a record before the last one has all that follows as its comment."""
    at = tail.find(_SIGNATURE)
    while at < last:
        if at + _END.size + _END.unpack_from(tail, at)[-1] == len(tail):
            raise InputError(path, "two records end it, each of a directory", expected="one", remedy=AGAIN)
        at = tail.find(_SIGNATURE, at + 1)


def _large_counts(path: Path, tail: bytes, start_of_tail: int) -> _Counts | None:
    """Return what the record for large archives says, none where there is none; the locator has to name its place."""
    if not tail[-_LOCATOR64.size :].startswith(b"PK\6\7"):
        return None
    at = len(tail) - _LOCATOR64.size - _END64.size
    locator = _LOCATOR64.unpack_from(tail, len(tail) - _LOCATOR64.size)
    if at < 0 or locator[1:] != (0, start_of_tail + at, 1) or not tail[at:].startswith(b"PK\6\6"):
        found = f"its end names a record for large archives at byte {locator[2]}"
        raise InputError(path, found, expected="one right before it", remedy=AGAIN)
    _, length, _, _, *fields = _END64.unpack_from(tail, at)
    if length != _END64.size - 12:
        found = f"its record for large archives is {length} bytes long"
        raise InputError(path, found, expected=f"{_END64.size - 12}", remedy=AGAIN)
    return _Counts(*fields)


def _require_agreeing(path: Path, end: _Counts, large: _Counts | None) -> None:
    """Raise `InputError` for a field of the last record that contradicts the record for large archives."""
    if large is None:
        return
    wrong = next(_contradictions(end, large), None)
    if wrong is not None:
        found, expected = wrong
        raise InputError(path, f"its records disagree: {found}", expected=expected, remedy=AGAIN)


def _contradictions(end: _Counts, large: _Counts) -> Iterator[tuple[str, str]]:
    for field, width in zip(_Counts.__struct_fields__, _WIDTHS, strict=True):
        found, expected, unsaid = getattr(end, field), getattr(large, field), (1 << width) - 1
        if found not in (expected, unsaid):
            yield f"the last says {found} where the one for large archives says {expected}", f"{expected} or {unsaid}"


def _require_true(path: Path, counts: _Counts, directory: Directory) -> None:
    """Raise `InputError` unless what the records say is true of the directory that was read."""
    start = directory.start
    if (counts.disk, counts.first_disk) != (0, 0) or counts.number_here != counts.number:
        raise InputError(path, "its end says that it is one of several files", expected="all in one", remedy=AGAIN)
    if counts.number != directory.number:
        found = f"its directory has {directory.number} entries, and says that it has {counts.number}"
        raise InputError(path, found, expected="the same number", remedy=AGAIN)
    if counts.start != start:
        found = f"its directory is at byte {start}, and its end says at byte {counts.start}"
        raise InputError(path, found, expected="the same place", remedy=AGAIN)
    if counts.length != directory.length:
        found = f"its directory, at byte {start}, is not of the {counts.length} bytes that its end says"
        raise InputError(path, found, expected="a whole archive", remedy=AGAIN)
