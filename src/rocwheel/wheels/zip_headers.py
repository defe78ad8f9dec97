"""Checks a ZIP archive's headers and end records (APPNOTE.TXT 6.3) for data that programs interpret differently.

Installers that read a file use its central directory. Installers that stream a file from an index follow the local
headers.

`zipfile` uses the ZIP64 end record if there is one, and shifts the directory so that it ends right before the end
records. Other programs use the last record unless it refers to the ZIP64 record, and rely on its offset (APPNOTE.TXT
6.3, sections 4.3.14 to 4.3.16).
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


AGAIN: Final = "Build or download it again."
"""The remedy for all errors in this module, because the only solution is another archive."""


ZIP_MAGIC: Final = b"PK\3\4"
"""The signature of a local header, at the start of an archive (APPNOTE.TXT 4.3.7)."""
ZIP64: Final = 1
UNICODE_PATH: Final = 0x7075
_HEAD = struct.Struct("<2H")


def iter_extra_fields(extra: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the kind, declared length, and data of each field.

    If the last field is truncated, its data is shorter than declared.

    If the remaining bytes are too few for a field's header, they are padding.
    """
    at = 0
    while at + _HEAD.size <= len(extra):
        kind, length = _HEAD.unpack_from(extra, at)
        at += _HEAD.size
        yield kind, length, extra[at : at + length]
        at += length


ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Returns a number of bytes from an offset in the archive, or fewer bytes at its end, like pread(2)."""

_HEADER = struct.Struct("<4s5H3L2H")
MOST_OF_HEADER = _HEADER.size + 64
"""The size of a header without the name, but with the extra fields that writers usually add."""
_DESCRIPTOR_FLAG = 0x8
_IN_EXTRA = 0xFFFFFFFF


class LocalHeader(msgspec.Struct, frozen=True):
    """A local header, which comes before the content of a member."""

    name: bytes
    version: int
    """The ZIP version that a program must support to unpack the member."""
    flags: int
    method: int
    crc32: int
    packed_size: int
    size: int
    content: int
    """The offset of the packed bytes."""
    extra: bytes
    narrow: tuple[int, int]
    """The 32-bit size and packed size in the header, before a ZIP64 field replaces them."""

    @property
    def is_stream(self) -> bool:
        """Whether the checksum and sizes are in a data descriptor after the packed bytes."""
        return bool(self.flags & _DESCRIPTOR_FLAG)

    @property
    def is_zip64(self) -> bool:
        """Whether a data descriptor has 64-bit sizes, even if the sizes are small (APPNOTE.TXT 4.3.9.2)."""
        return any(kind == ZIP64 for kind, *_ in iter_extra_fields(self.extra))

    def agrees_with(self, method: int, crc32: int, packed_size: int, size: int) -> bool:
        """Return whether these values from the central directory are consistent with this header.

        If a member was written as a stream, this header contains zeros, and the checksum and sizes follow the packed
        bytes.
        """
        pairs = ((self.crc32, crc32), (self.packed_size, packed_size), (self.size, size))
        return self.method == method and all(here == there or (self.is_stream and not here) for here, there in pairs)


def read_local_header(read_at: ReadAt, offset: int) -> LocalHeader | None:
    """Read the local header at ``offset`` in an archive, or return `None` if there is no header."""
    data = read_at(_HEADER.size, offset)
    if len(data) < _HEADER.size or not data.startswith(ZIP_MAGIC):
        return None
    _, version, flags, method, _, _, crc32, packed_size, size, name_size, extra_size = _HEADER.unpack(data)
    narrow = size, packed_size
    rest = read_at(name_size + extra_size, offset + _HEADER.size)
    name, extra = rest[:name_size], rest[name_size:]
    if _IN_EXTRA in (packed_size, size):
        # A member's large sizes, the unpacked size first. Each size is present only if the header has no room for it.
        data = next((data for kind, _, data in iter_extra_fields(extra) if kind == ZIP64), b"")
        large = (value for (value,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]))
        size, packed_size = (next(large, 0) if value == _IN_EXTRA else value for value in (size, packed_size))
    content = offset + _HEADER.size + name_size + extra_size
    return LocalHeader(name, version, flags, method, crc32, packed_size, size, content, extra, narrow)


HEAD_PIECE: Final = 512
"""The number of packed bytes that nearly always identify a member's type (`rocwheel.binary.kind.HEAD_SIZE`)."""


def beginning(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range to read at the beginning of every member."""
    size = MOST_OF_HEADER + len(info.orig_filename.encode(errors="replace")) + min(info.compress_size, HEAD_PIECE)
    return info.header_offset, info.header_offset + size


_UNICODE_PATH_HEAD: Final = 5
_DEFLATED_NOTHING: Final = (b"\3\0", b"\1\0\0\xff\xff")
"""Deflated empty data as written by programs: with fixed codes, or as a stored block."""
_LONGEST_DESCRIPTOR: Final = 24


class Extent(msgspec.Struct, frozen=True):
    """A member's range in its archive, from its local header to the end of its packed bytes."""

    info: zipfile.ZipInfo
    header: LocalHeader

    @property
    def start(self) -> int:
        """The offset of the member's local header."""
        return self.info.header_offset

    @property
    def stop(self) -> int:
        """The offset right after the member's packed bytes."""
        return self.header.content + self.info.compress_size


def require_plain_name(path: Path, info: zipfile.ZipInfo) -> None:
    """Raise `InputError` for a member that doesn't have exactly one name, and for a folder with content."""
    if not info.filename:
        raise InputError(path, "has a member without a name", remedy=AGAIN)
    if problem := _name_problem(info):
        source, (found, expected) = f"{path}!{info.filename}", problem
        raise InputError(source, found, expected=expected, remedy=AGAIN)


def _name_problem(info: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Return the problem with a name and what was expected, or `None` if the name is valid."""
    if "\0" in info.orig_filename:
        return "the name has a NUL byte, which ends the name in some programs", "a plain name"
    is_full_folder = info.filename.endswith("/") and info.file_size
    return ("is a folder with content", "an empty folder") if is_full_folder else None


def require_one_name(source: str, own: bytes, *extras: bytes) -> None:
    """Raise `InputError` if extra fields give a member a different name (APPNOTE.TXT 4.6.9)."""
    for extra in extras:
        for kind, _, data in iter_extra_fields(extra):
            if kind == UNICODE_PATH and data[_UNICODE_PATH_HEAD:] != own:
                found = f"also has the name {quoted(data[_UNICODE_PATH_HEAD:])}"
                raise InputError(source, found, expected="one name", remedy=AGAIN)


def require_empty(source: str, info: zipfile.ZipInfo, header: LocalHeader, read_at: ReadAt) -> None:
    """Raise `InputError` for a folder with packed bytes, which may contain members that only some programs see."""
    size = info.compress_size
    if not size:
        return
    longest = max(map(len, _DEFLATED_NOTHING))
    packed = read_at(min(size, longest + 1), header.content)
    if info.compress_type != zipfile.ZIP_DEFLATED or packed not in _DEFLATED_NOTHING:
        raise InputError(
            source, f"is a folder with {count(size, 'packed byte')}", expected="an empty folder", remedy=AGAIN
        )


def require_apart(path: Path, extents: Iterable[Extent], start_of_directory: int, read_at: ReadAt) -> None:
    """Raise `InputError` unless members fill the archive without gaps from its start to the central directory.

    Members that share bytes can expand from megabytes to terabytes. Bytes outside the members may contain a member that
    only some programs see.
    """
    before: Extent | None = None
    for extent in sorted(extents, key=lambda extent: extent.start):
        if before is not None and extent.start < before.stop:
            source, found = f"{path}!{extent.info.filename}", f"shares bytes with {before.info.filename}"
            raise InputError(source, found, expected="separate bytes for each member", remedy=AGAIN)
        _require_no_gap(path, before, extent.start, read_at)
        before = extent
    if before is not None and before.stop > start_of_directory:
        msg = f"{before.info.filename} overlaps the central directory"
        raise zipfile.BadZipFile(msg)
    _require_no_gap(path, before, start_of_directory, read_at)


def _require_no_gap(path: Path, before: Extent | None, stop: int, read_at: ReadAt) -> None:
    """Raise `InputError` for bytes that don't belong to any member.

    A data descriptor follows a member that was written as a stream (APPNOTE.TXT 4.3.9).
    """
    start = before.stop if before else 0
    size = stop - start
    if before and before.header.is_stream:
        info = before.info
        layout = "<I2Q" if before.header.is_zip64 or max(info.compress_size, info.file_size) >> 32 else "<I2I"
        fields = struct.pack(layout, info.CRC, info.compress_size, info.file_size)
        if read_at(min(size, _LONGEST_DESCRIPTOR + 1), start) not in (fields, b"PK\7\10" + fields):
            source, what = f"{path}!{info.filename}", "isn't followed directly by its data descriptor"
            raise InputError(
                source, what, expected="a data descriptor, which follows each streamed member", remedy=AGAIN
            )
    elif size:
        found = f"bytes {start} to {stop} don't belong to any member in the central directory"
        raise InputError(path, found, expected="contiguous members", remedy=AGAIN)


_END: Final = struct.Struct("<4s4H2IH")
_END64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64: Final = struct.Struct("<4sIQI")
_LONGEST_COMMENT: Final = 0xFFFF
_SIGNATURE: Final = b"PK\5\6"


class _Counts(msgspec.Struct, frozen=True):
    """Values in an end record: disk number, the directory's disk, entries on the disk, all entries, size, offset."""

    disk: int
    first_disk: int
    number_here: int
    number: int
    length: int
    start: int


_WIDTHS: Final = (16, 16, 16, 16, 32, 32)
"""The width in bits of each `_Counts` field in the last record.

If all bits are set, the value is in the ZIP64 record.
"""


class Directory(msgspec.Struct, frozen=True):
    """The central directory as it was read."""

    number: int
    """The number of its entries."""
    start: int
    length: int
    """The size, calculated from the entries. If the last entry extends beyond the directory, `zipfile` truncates it.
    """


def require_whole_end(path: Path, directory: Directory, size: int, read_at: ReadAt) -> None:
    """Raise `InputError` unless the directory matches all end records and the last record is at the end of the file."""
    start_of_tail, tail, at = _find_end(size, read_at)
    *fields, comment = _END.unpack_from(tail, at)[1:]
    behind = len(tail) - at - _END.size - comment
    if behind:
        raise InputError(path, f"has {behind} bytes after its end", expected="no bytes", remedy=AGAIN)
    _require_one_end(path, tail, at)
    end = _Counts(*fields)
    large = _large_counts(path, tail[:at], start_of_tail)
    _require_agreeing(path, end, large)
    counts = large or end
    start = directory.start
    if (counts.disk, counts.first_disk) != (0, 0) or counts.number_here != counts.number:
        raise InputError(
            path, "the end record declares an archive in several parts", expected="a single file", remedy=AGAIN
        )
    if counts.number != directory.number:
        found = f"the central directory has {directory.number} entries, but the end record declares {counts.number}"
        raise InputError(path, found, expected="the same number", remedy=AGAIN)
    if counts.start != start:
        found = f"the central directory is at byte {start}, but the end record declares byte {counts.start}"
        raise InputError(path, found, expected="the same offset", remedy=AGAIN)
    if counts.length != directory.length:
        found = (
            f"the central directory at byte {start} doesn't have the {counts.length} bytes that the end record declares"
        )
        raise InputError(path, found, expected="a complete archive", remedy=AGAIN)


def _find_end(size: int, read_at: ReadAt) -> tuple[int, bytes, int]:
    """Return the offset of the file's last bytes, these bytes, and the position of the end record in these bytes."""
    longest = _END.size + _LOCATOR64.size + _END64.size + _LONGEST_COMMENT
    start = max(size - longest, 0)
    tail = read_at(size - start, start)
    if tail[-_END.size :].startswith(_SIGNATURE) and tail.endswith(b"\0\0"):
        return start, tail, len(tail) - _END.size
    at = tail.rfind(_SIGNATURE)
    if at < 0 or len(tail) - at < _END.size:
        msg = "the end record moved"
        raise zipfile.BadZipFile(msg)
    return start, tail, at


def _require_one_end(path: Path, tail: bytes, last: int) -> None:
    """Raise `InputError` if there is an earlier end record whose comment contains everything after it."""
    at = tail.find(_SIGNATURE)
    while at < last:
        if at + _END.size + _END.unpack_from(tail, at)[-1] == len(tail):
            raise InputError(path, "the archive has two end records", expected="only one end record", remedy=AGAIN)
        at = tail.find(_SIGNATURE, at + 1)


def _large_counts(path: Path, tail: bytes, start_of_tail: int) -> _Counts | None:
    """Return the values in the ZIP64 end record, to which the locator must point, or `None` if there is no record."""
    if not tail[-_LOCATOR64.size :].startswith(b"PK\6\7"):
        return None
    at = len(tail) - _LOCATOR64.size - _END64.size
    locator = _LOCATOR64.unpack_from(tail, len(tail) - _LOCATOR64.size)
    if at < 0 or locator[1:] != (0, start_of_tail + at, 1) or not tail[at:].startswith(b"PK\6\6"):
        found = f"the locator refers to a ZIP64 end record at byte {locator[2]}"
        raise InputError(path, found, expected="a ZIP64 end record right before the locator", remedy=AGAIN)
    _, length, _, _, *fields = _END64.unpack_from(tail, at)
    if length != _END64.size - 12:
        found = f"the ZIP64 end record is {length} bytes long"
        raise InputError(path, found, expected=f"{_END64.size - 12} bytes", remedy=AGAIN)
    return _Counts(*fields)


def _require_agreeing(path: Path, end: _Counts, large: _Counts | None) -> None:
    """Raise `InputError` if a field of the last record contradicts the ZIP64 record."""
    if large is None:
        return
    wrong = next(_contradictions(end, large), None)
    if wrong is not None:
        found, expected = wrong
        raise InputError(path, f"the end records disagree: {found}", expected=expected, remedy=AGAIN)


def _contradictions(end: _Counts, large: _Counts) -> Iterator[tuple[str, str]]:
    for field, width in zip(_Counts.__struct_fields__, _WIDTHS, strict=True):
        found, expected, unsaid = getattr(end, field), getattr(large, field), (1 << width) - 1
        if found not in (expected, unsaid):
            yield f"the last record has {found}, but the ZIP64 record has {expected}", f"{expected} or {unsaid}"
