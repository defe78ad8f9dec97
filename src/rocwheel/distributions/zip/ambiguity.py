"""What programs read differently of a ZIP archive (APPNOTE.TXT 6.3): bytes, names and records that contradict it.

Installers that read a file go by its directory, those that read it from an index as a stream from header to header, and
programs find the directory by the first or the last record that may be its end.
"""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.messages.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.distributions.zip.local_header import ReadAt

__all__ = ["Extent", "require_apart", "require_plain_name", "require_whole_end"]

_AGAIN: Final = "Build or download it again."
_END: Final = struct.Struct("<4s4H2IH")
_END64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64: Final = struct.Struct("<4sIQI")
_ENTRY_SIZE: Final = 46
_LONGEST_COMMENT: Final = 0xFFFF
_STREAMED, _UTF8 = 0x8, 0x800
_UNICODE_PATH: Final = 0x7075
_UNICODE_PATH_HEAD: Final = 5
_LONGEST_DESCRIPTOR: Final = 24


class Extent(msgspec.Struct, frozen=True):
    """Where a member is in its archive: from its own header to the end of its packed bytes."""

    info: zipfile.ZipInfo
    stop: int

    @property
    def start(self) -> int:
        """The offset of its header."""
        return self.info.header_offset


def require_plain_name(path: Path, info: zipfile.ZipInfo) -> None:
    """Raise `InputError` for a member without one name alone, and for a folder with content."""
    if not info.filename:
        raise InputError(path, "has a member without a name", remedy=_AGAIN)
    if problem := _name_problem(info):
        source, (found, expected) = f"{path}!{info.filename}", problem
        raise InputError(source, found, expected=expected, remedy=_AGAIN)


def _name_problem(info: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Return what is wrong with a name and what was expected; none where nothing is."""
    if "\0" in info.orig_filename:
        return "its name has a NUL byte, where some programs cut it off", "a plain name"
    own = _name_bytes(info)
    other = next((name for name in _unicode_paths(info.extra) if name != own), None)
    if other is not None:
        return f"also calls itself {quoted(other)}", "one name"
    is_full_folder = info.filename.endswith("/") and info.file_size
    return ("a folder with content", "an empty one") if is_full_folder else None


def require_apart(path: Path, extents: Iterable[Extent], start_of_directory: int, read_at: ReadAt) -> None:
    """Raise `InputError` unless the members follow one another from the archive's start up to its directory.

    Members that share bytes pack terabytes into megabytes; bytes of none may be a member that only some programs see.
    """
    before: Extent | None = None
    for extent in sorted(extents, key=lambda extent: extent.start):
        if before is not None and extent.start < before.stop:
            source, found = f"{path}!{extent.info.filename}", f"shares bytes with {before.info.filename}"
            raise InputError(
                source, found, expected="bytes of its own", remedy="It is damaged: build or download it again."
            )
        _require_no_gap(path, before, extent.start, read_at)
        before = extent
    if before is not None and before.stop > start_of_directory:
        msg = f"{before.info.filename} reaches into the directory"
        raise zipfile.BadZipFile(msg)
    _require_no_gap(path, before, start_of_directory, read_at)


def _require_no_gap(path: Path, before: Extent | None, stop: int, read_at: ReadAt) -> None:
    """Raise `InputError` for bytes that belong to no member, unless they say how long the one before is."""
    start = before.stop if before else 0
    size = stop - start
    if not size:
        return
    if before and size <= _LONGEST_DESCRIPTOR and read_at(size, start) in _descriptors(before.info):
        return
    found = f"bytes {start} to {stop} belong to no member that its directory names"
    raise InputError(path, found, expected="members one after the other", remedy=_AGAIN)


def _descriptors(info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield what may follow a member that was written as a stream (APPNOTE.TXT 4.3.9)."""
    if info.flag_bits & _STREAMED:
        for layout in ("<I2I", "<I2Q"):
            if max(info.compress_size, info.file_size) >> (32 if layout == "<I2I" else 64) == 0:
                fields = struct.pack(layout, info.CRC, info.compress_size, info.file_size)
                yield fields
                yield b"PK\7\10" + fields


def require_whole_end(
    path: Path, infos: Sequence[zipfile.ZipInfo], start_of_directory: int, size: int, read_at: ReadAt
) -> None:
    """Raise `InputError` unless the directory is as its last record says, and that is the end of the file."""
    tail, at = _find_end(size, read_at)
    _, _, _, _, number, length, _, comment = _END.unpack_from(tail, at)
    behind = len(tail) - at - _END.size - comment
    if behind:
        raise InputError(path, f"{behind} bytes behind its end", expected="none", remedy=_AGAIN)
    number, length = _large_counts(tail[:at]) or (number, length)
    if number != len(infos):
        found = f"its directory has {len(infos)} entries, and says that it has {number}"
        raise InputError(path, found, expected="the same number", remedy=_AGAIN)
    if length != sum(map(_entry_size, infos)):
        found = f"its directory, at byte {start_of_directory}, is not of the {length} bytes that its end says"
        raise InputError(path, found, expected="a whole archive", remedy=_AGAIN)


def _find_end(size: int, read_at: ReadAt) -> tuple[bytes, int]:
    """Return the last bytes of the file and where the last record begins in them, as `zipfile` finds it."""
    plain = _END.size + _LOCATOR64.size + _END64.size
    tail = read_at(min(size, plain), max(size - plain, 0))
    if tail[-_END.size :].startswith(b"PK\5\6") and tail.endswith(b"\0\0"):
        return tail, len(tail) - _END.size
    longest = plain + _LONGEST_COMMENT
    tail = read_at(min(size, longest), max(size - longest, 0))
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END.size:
        msg = "its end is not where it was"
        raise zipfile.BadZipFile(msg)
    return tail, at


def _large_counts(tail: bytes) -> tuple[int, int] | None:
    """Return number and size of the entries by the record for large archives, none where there is none."""
    if not tail[-_LOCATOR64.size :].startswith(b"PK\6\7") or len(tail) < _LOCATOR64.size + _END64.size:
        return None
    fields = _END64.unpack_from(tail, len(tail) - _LOCATOR64.size - _END64.size)
    return (fields[7], fields[8]) if fields[0] == b"PK\6\6" else None


def _entry_size(info: zipfile.ZipInfo) -> int:
    return _ENTRY_SIZE + len(_name_bytes(info)) + len(info.extra) + len(info.comment)


def _name_bytes(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def _unicode_paths(extra: bytes) -> Iterator[bytes]:
    """Yield the names that the extra fields give a member in place of its own (APPNOTE.TXT 4.6.9)."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == _UNICODE_PATH:
            yield extra[4 + _UNICODE_PATH_HEAD : 4 + length]
        extra = extra[4 + length :]
