"""The headers and the end of a ZIP archive (APPNOTE.TXT 6.3), and what programs would read differently of them.

Installers that read a file go by its directory, those that read it from an index as a stream from header to header.

`zipfile` goes by the record for large archives where there is one, and shifts the directory so that it ends right
before these records. Other programs go by the last record where it doesn't say "look in the other", and believe its
offset (APPNOTE.TXT 6.3, sections 4.3.14 to 4.3.16).
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
"""The remedy for all of them: nothing but another archive helps."""


ZIP_MAGIC: Final = b"PK\3\4"
"""The signature of a member's header, with which an archive begins (APPNOTE.TXT 4.3.7)."""
ZIP64: Final = 1
UNICODE_PATH: Final = 0x7075
_HEAD = struct.Struct("<2H")


def iter_extra_fields(extra: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, promised length and data of each field; data that the last one lacks are left out.

    Fewer bytes than a field's head are padding.
    """
    at = 0
    while at + _HEAD.size <= len(extra):
        kind, length = _HEAD.unpack_from(extra, at)
        at += _HEAD.size
        yield kind, length, extra[at : at + length]
        at += length


ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Returns so many bytes of the archive from an offset, fewer at its end, as pread(2) does."""

_HEADER = struct.Struct("<4s5H3L2H")
MOST_OF_HEADER = _HEADER.size + 64
"""Bytes of a header besides the name, with what writers usually add to it."""
_DESCRIPTOR_FLAG = 0x8
_IN_EXTRA = 0xFFFFFFFF


class LocalHeader(msgspec.Struct, frozen=True):
    """What stands before the content of a member."""

    name: bytes
    version: int
    """Of ZIP, that a program needs in order to unpack the member."""
    flags: int
    method: int
    crc32: int
    packed_size: int
    size: int
    content: int
    """The offset of the packed bytes."""
    extra: bytes
    narrow: tuple[int, int]
    """Size and packed size as the header has them in 32 bits, before a ZIP64 field takes their place."""

    @property
    def is_stream(self) -> bool:
        """Return whether checksum and sizes are said behind the packed bytes, in a descriptor."""
        return bool(self.flags & _DESCRIPTOR_FLAG)

    @property
    def is_zip64(self) -> bool:
        """Return whether a descriptor has sizes of 64 bits, however small (APPNOTE.TXT 4.3.9.2)."""
        return any(kind == ZIP64 for kind, *_ in iter_extra_fields(self.extra))

    def agrees_with(self, method: int, crc32: int, packed_size: int, size: int) -> bool:
        """Return whether the directory may say this of the same member.

        A member that was written as a stream has checksum and sizes behind it, and zeros here.
        """
        pairs = ((self.crc32, crc32), (self.packed_size, packed_size), (self.size, size))
        return self.method == method and all(here == there or (self.is_stream and not here) for here, there in pairs)


def read_local_header(read_at: ReadAt, offset: int) -> LocalHeader | None:
    """Read the header at ``offset`` of an archive; return none when there is none."""
    data = read_at(_HEADER.size, offset)
    if len(data) < _HEADER.size or not data.startswith(ZIP_MAGIC):
        return None
    _, version, flags, method, _, _, crc32, packed_size, size, name_size, extra_size = _HEADER.unpack(data)
    narrow = size, packed_size
    rest = read_at(name_size + extra_size, offset + _HEADER.size)
    name, extra = rest[:name_size], rest[name_size:]
    if _IN_EXTRA in (packed_size, size):
        # The large sizes of a member: the unpacked one first, each only where the header has no room for it.
        data = next((data for kind, _, data in iter_extra_fields(extra) if kind == ZIP64), b"")
        large = (value for (value,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]))
        size, packed_size = (next(large, 0) if value == _IN_EXTRA else value for value in (size, packed_size))
    content = offset + _HEADER.size + name_size + extra_size
    return LocalHeader(name, version, flags, method, crc32, packed_size, size, content, extra, narrow)


HEAD_PIECE: Final = 512
"""Packed bytes that nearly always hold the first ones that tell what a member is (`rocwheel.binary.kind.HEAD_SIZE`)."""


def beginning(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range of what is read of every member."""
    size = MOST_OF_HEADER + len(info.orig_filename.encode(errors="replace")) + min(info.compress_size, HEAD_PIECE)
    return info.header_offset, info.header_offset + size


_UNICODE_PATH_HEAD: Final = 5
_DEFLATED_NOTHING: Final = (b"\3\0", b"\1\0\0\xff\xff")
"""No bytes, as programs deflate them: by codes that deflate has, or as they are."""
_LONGEST_DESCRIPTOR: Final = 24


class Extent(msgspec.Struct, frozen=True):
    """Where a member is in its archive: from its own header to the end of its packed bytes."""

    info: zipfile.ZipInfo
    header: LocalHeader

    @property
    def start(self) -> int:
        """The offset of its header."""
        return self.info.header_offset

    @property
    def stop(self) -> int:
        """The offset behind its packed bytes."""
        return self.header.content + self.info.compress_size


def require_plain_name(path: Path, info: zipfile.ZipInfo) -> None:
    """Raise `InputError` for a member without one name alone, and for a folder with content."""
    if not info.filename:
        raise InputError(path, "has a member without a name", remedy=AGAIN)
    if problem := _name_problem(info):
        source, (found, expected) = f"{path}!{info.filename}", problem
        raise InputError(source, found, expected=expected, remedy=AGAIN)


def _name_problem(info: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Return what is wrong with a name and what was expected; none where nothing is."""
    if "\0" in info.orig_filename:
        return "its name has a NUL byte, where some programs cut it off", "a plain name"
    is_full_folder = info.filename.endswith("/") and info.file_size
    return ("a folder with content", "an empty one") if is_full_folder else None


def require_one_name(source: str, own: bytes, *extras: bytes) -> None:
    """Raise `InputError` for a member that extra fields give a name in place of its own (APPNOTE.TXT 4.6.9)."""
    for extra in extras:
        for kind, _, data in iter_extra_fields(extra):
            if kind == UNICODE_PATH and data[_UNICODE_PATH_HEAD:] != own:
                found = f"also calls itself {quoted(data[_UNICODE_PATH_HEAD:])}"
                raise InputError(source, found, expected="one name", remedy=AGAIN)


def require_empty(source: str, info: zipfile.ZipInfo, header: LocalHeader, read_at: ReadAt) -> None:
    """Raise `InputError` for a folder with packed bytes, which may be members that only some programs see."""
    size = info.compress_size
    if not size:
        return
    longest = max(map(len, _DEFLATED_NOTHING))
    packed = read_at(min(size, longest + 1), header.content)
    if info.compress_type != zipfile.ZIP_DEFLATED or packed not in _DEFLATED_NOTHING:
        raise InputError(source, f"a folder with {count(size, 'packed byte')}", expected="an empty one", remedy=AGAIN)


def require_apart(path: Path, extents: Iterable[Extent], start_of_directory: int, read_at: ReadAt) -> None:
    """Raise `InputError` unless the members follow one another from the archive's start up to its directory.

    Members that share bytes pack terabytes into megabytes; bytes of none may be a member that only some programs see.
    """
    before: Extent | None = None
    for extent in sorted(extents, key=lambda extent: extent.start):
        if before is not None and extent.start < before.stop:
            source, found = f"{path}!{extent.info.filename}", f"shares bytes with {before.info.filename}"
            raise InputError(source, found, expected="bytes of its own", remedy=AGAIN)
        _require_no_gap(path, before, extent.start, read_at)
        before = extent
    if before is not None and before.stop > start_of_directory:
        msg = f"{before.info.filename} reaches into the directory"
        raise zipfile.BadZipFile(msg)
    _require_no_gap(path, before, start_of_directory, read_at)


def _require_no_gap(path: Path, before: Extent | None, stop: int, read_at: ReadAt) -> None:
    """Raise `InputError` for bytes that belong to no member.

    A member that was written as a stream has a descriptor behind it (APPNOTE.TXT 4.3.9).
    """
    start = before.stop if before else 0
    size = stop - start
    if before and before.header.is_stream:
        info = before.info
        layout = "<I2Q" if before.header.is_zip64 or max(info.compress_size, info.file_size) >> 32 else "<I2I"
        fields = struct.pack(layout, info.CRC, info.compress_size, info.file_size)
        if read_at(min(size, _LONGEST_DESCRIPTOR + 1), start) not in (fields, b"PK\7\10" + fields):
            source, what = f"{path}!{info.filename}", "isn't followed by its checksum and sizes alone"
            raise InputError(source, what, expected="these, as behind what was written as a stream", remedy=AGAIN)
    elif size:
        found = f"bytes {start} to {stop} belong to no member that its directory names"
        raise InputError(path, found, expected="members one after the other", remedy=AGAIN)


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
    counts = large or end
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
