"""What programs read differently of a ZIP archive (APPNOTE.TXT 6.3): bytes and names that contradict its directory.

Installers that read a file go by its directory, those that read it from an index as a stream from header to header.
"""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.distributions.zip.extra_fields import UNICODE_PATH, iter_extra_fields
from rocwheel.distributions.zip.local_header import LocalHeader
from rocwheel.distributions.zip.remedy import AGAIN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.distributions.zip.local_header import ReadAt

__all__ = ["Extent", "require_apart", "require_empty", "require_one_name", "require_plain_name"]

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
        for kind, data in iter_extra_fields(extra):
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
    """Raise `InputError` for bytes that belong to no member; one that was written as a stream has a descriptor."""
    start = before.stop if before else 0
    size = stop - start
    if before and before.header.is_stream:
        _require_descriptor(path, before, read_at(min(size, _LONGEST_DESCRIPTOR + 1), start))
    elif size:
        found = f"bytes {start} to {stop} belong to no member that its directory names"
        raise InputError(path, found, expected="members one after the other", remedy=AGAIN)


def _require_descriptor(path: Path, extent: Extent, found: bytes) -> None:
    """Raise `InputError` unless a descriptor and nothing else follows a member (APPNOTE.TXT 4.3.9)."""
    info = extent.info
    layout = "<I2Q" if extent.header.is_zip64 or max(info.compress_size, info.file_size) >> 32 else "<I2I"
    fields = struct.pack(layout, info.CRC, info.compress_size, info.file_size)
    if found not in (fields, b"PK\7\10" + fields):
        source, what = f"{path}!{info.filename}", "isn't followed by its checksum and sizes alone"
        raise InputError(source, what, expected="these, as behind what was written as a stream", remedy=AGAIN)
