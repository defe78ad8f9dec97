"""Reads the central directory of a ZIP archive (APPNOTE.TXT 6.3): its members and their names."""

from __future__ import annotations

import errno
import os
import struct
import zipfile
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple

from rocwheel.core.compression import BOUND, most_unpacked
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count, quoted
from rocwheel.core.reading import FileRange, FileStamp, open_regular, read_at
from rocwheel.core.remote_file import source_of
from rocwheel.wheels.member_compression import DEFLATED, STORED
from rocwheel.wheels.zip_headers import (
    AGAIN,
    Directory,
    Extent,
    LocalHeader,
    ReadAt,
    beginning,
    read_local_header,
    require_apart,
    require_empty,
    require_one_name,
    require_plain_name,
    require_whole_end,
)
from rocwheel.wheels.zip_reader import ZipMember
from rocwheel.wheels.zip_refusals import find_refused, read_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from rocwheel.wheels.zip_refusals import CentralEntry


_EXPECTED = "a wheel, which has exactly one"


def find_dist_info(path: Path | str, names: Iterable[str], *, expected: str = _EXPECTED) -> str:
    """Return the name of a wheel's ``.dist-info`` folder. Raises `InputError` unless there is exactly one."""
    found = {folder for name in names if (folder := name.partition("/")[0]).endswith(".dist-info")}
    if len(found) != 1:
        listed = ", ".join(sorted(found))
        what = f"has several .dist-info folders: {listed}" if found else "has no .dist-info folder"
        raise InputError(path, what, expected=expected)
    return found.pop()


def find_metadata(path: Path, names: Collection[str], *, expected: str = "") -> str:
    """Return the name of the member with a wheel's core metadata. Raises `InputError` if the member is missing."""
    member = f"{find_dist_info(path, names, expected=expected or _EXPECTED)}/METADATA"
    if member not in names:
        raise InputError(path, f"has no {member}", expected=expected or "a wheel")
    return member


_UTF8_FLAG = 0x800
_DAMAGED_ARCHIVE = (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, OverflowError, ValueError, struct.error)


class Archive(NamedTuple):
    """The contents of an archive's central directory."""

    members: tuple[ZipMember, ...]
    refused: tuple[InputError, ...]
    """The headers that installers reject (`rocwheel.wheels.zip_refusals`).

    Commands that only read the archive may accept them.
    """


def read_directory(path: Path) -> tuple[ZipMember, ...]:
    """Return the members from `read_archive`, for callers that only read or rewrite the archive."""
    return read_archive(path).members


def read_archive(path: Path) -> Archive:
    """Read the central directory of an archive, without entries for folders and without unpacking members.

    Raises `InputError` if the file isn't a ZIP archive or is damaged. Raises the same error if a member is encrypted or
    uses a method other than stored and deflate. Rejects members that unpack to more than `most_unpacked` bytes, and
    anything that programs interpret differently. Such problems are duplicate names, members that share bytes, a local
    header that contradicts the directory, and all other problems that `rocwheel.wheels.zip_headers` finds. Extra bytes
    after the end of a member's packed data are found only when the member is unpacked.
    """
    try:
        opened = open_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    try:
        with opened as file:
            stamp = FileStamp.of(os.fstat(file.fileno()))
            with zipfile.ZipFile(file) as archive:
                entries = read_entries(file, archive.start_dir, len(archive.infolist()))
                read = _read_members(path, archive, entries, _reader_at(path, file.fileno()), stamp)
                _require_end(path, archive, sum(entry.length for entry in entries), file)
                size = file.seek(0, os.SEEK_END)
                total = sum(member.size for member in read.members)
                if total > most_unpacked(size):
                    found = f"unpacks {size} bytes to {count(total, 'byte')}"
                    remedy = "If you trust the archive, pack it again without compression."
                    raise InputError(path, found, expected=BOUND, remedy=remedy)
            stamp.require(os.fstat(file.fileno()), str(path))
    except _DAMAGED_ARCHIVE as e:
        # The error for an unreadable directory. The library reports every failed read as damage.
        reason = e.__context__ if isinstance(e, zipfile.BadZipFile) else e
        if isinstance(reason, OSError) and reason.errno not in {None, errno.EINVAL}:
            raise read_error(path, reason) from e
        raise InputError(path, f"is a damaged archive ({e})", remedy=AGAIN) from e
    return read


def _read_members(
    path: Path, archive: zipfile.ZipFile, entries: Sequence[CentralEntry], read_at: ReadAt, stamp: FileStamp
) -> Archive:
    infos = archive.infolist()
    for info in infos:
        require_plain_name(path, info)
    if source := source_of(path):
        source.prefetch(map(beginning, infos))
    extents = [Extent(info, _read_header(path, info, read_at)) for info in infos]
    # `ZipInfo.is_dir` fails for an empty name before Python 3.12.
    whole = FileRange.stamped(path, stamp)
    members = tuple(_member(whole, one) for one in extents if not one.info.filename.endswith("/"))
    folders = {info.filename[:-1] for info in infos if info.filename.endswith("/")}
    names: set[str] = set()
    for member in members:
        if member.name in names or member.name in folders:
            found = "occurs twice" if member.name in names else "is also a folder"
            raise InputError(member.source, found, expected="unique member names", remedy=AGAIN)
        names.add(member.name)
    require_apart(path, extents, archive.start_dir, read_at)
    headers = (extent.header for extent in extents)
    return Archive(members, find_refused(path, archive.comment, zip(infos, entries, headers, strict=True)))


def _require_end(path: Path, archive: zipfile.ZipFile, length: int, file: IO[bytes]) -> None:
    def read(size: int, offset: int) -> bytes:
        file.seek(offset)
        return file.read(size)

    directory = Directory(len(archive.infolist()), archive.start_dir, length)
    require_whole_end(path, directory, file.seek(0, os.SEEK_END), read)


def _reader_at(path: Path, descriptor: int) -> ReadAt:
    source = source_of(path)
    if source is None:
        return partial(read_at, descriptor)
    return lambda size, offset: source.read(offset, min(offset + size, source.size)) if offset < source.size else b""


def _member(whole: FileRange, extent: Extent) -> ZipMember:
    info, start = extent.info, extent.header.content
    packed = whole.part(start, start + info.compress_size)
    return ZipMember(info.filename, info.external_attr >> 16, info.compress_type, info.file_size, info.CRC, packed)


def _read_header(path: Path, info: zipfile.ZipInfo, read_at: ReadAt) -> LocalHeader:
    """Return the local header of a member, which must agree with the central directory."""
    source = f"{path}!{info.filename}"
    is_folder = info.filename.endswith("/")
    if not is_folder:
        if info.flag_bits & 1 or info.compress_type not in {STORED, DEFLATED}:
            how = "is encrypted" if info.flag_bits & 1 else f"is compressed with method {info.compress_type}"
            raise InputError(source, how, expected="a stored or deflated member, which installers can read")
        if info.compress_type == STORED and info.compress_size != info.file_size:
            found = f"is stored in {count(info.compress_size, 'byte')}"
            raise InputError(source, found, expected=f"its unpacked size, {info.file_size}", remedy=AGAIN)
    header = read_local_header(read_at, info.header_offset)
    if header is None:
        raise InputError(
            source, "has no local header at the offset in the central directory", expected="a complete archive"
        )
    if header.name.decode("utf-8" if header.flags & _UTF8_FLAG else "cp437") != info.orig_filename:
        raise InputError(
            source,
            f"has the name {quoted(header.name)} in its local header",
            expected="the name in the central directory",
            remedy=AGAIN,
        )
    promised = (info.compress_type, info.CRC, info.compress_size, info.file_size)
    if not header.agrees_with(*promised):
        found = f"has method {header.method}, checksum {header.crc32:08x} and sizes {header.packed_size}, {header.size}"
        expected = "{}, {:08x} and {}, {} as in the central directory".format(*promised)
        raise InputError(source, found, expected=expected, remedy=AGAIN)
    require_one_name(source, header.name, header.extra, info.extra)
    if is_folder:
        require_empty(source, info, header, read_at)
    return header
