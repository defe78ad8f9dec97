"""The directory of a ZIP archive (APPNOTE.TXT 6.3): its members, and what programs would read differently."""

from __future__ import annotations

import errno
import os
import struct
import zipfile
from functools import partial
from typing import IO, TYPE_CHECKING

from rocwheel.distributions.packing.compression import DEFLATED, STORED
from rocwheel.distributions.zip.ambiguity import Extent, require_apart, require_plain_name, require_whole_end
from rocwheel.distributions.zip.local_header import MOST_OF_HEADER, ReadAt, read_local_header
from rocwheel.distributions.zip.reader import AGAIN, HEAD_PIECE, ZipMember
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.regular_files import open_regular, read_at
from rocwheel.foundation.files.reading.stand_ins import prefetch, source_at
from rocwheel.foundation.messages.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["read_directory"]

_UTF8_FLAG = 0x800
_DAMAGED_ARCHIVE = (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, OverflowError, ValueError, struct.error)


def read_directory(path: Path) -> tuple[ZipMember, ...]:
    """Read an archive's directory, folders left out; nothing of the members is unpacked.

    Raises `InputError` for a file that is not a ZIP archive or is damaged, for members that are encrypted or packed by
    a method other than stored and deflate, and for what programs read differently: two members of one name, members
    that share bytes, a member whose own header disagrees with the directory, and what `ambiguity` names.
    """
    try:
        opened = open_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    try:
        with opened as file:
            stamp = FileStamp.of(os.fstat(file.fileno()))
            with zipfile.ZipFile(file) as archive:
                members = _members(path, archive, _reader_at(path, file.fileno()), stamp)
                _require_end(path, archive, file)
            stamp.require(os.fstat(file.fileno()), str(path))
    except _DAMAGED_ARCHIVE as e:
        raise _directory_error(path, e) from e
    return members


def _members(path: Path, archive: zipfile.ZipFile, read_at: ReadAt, stamp: FileStamp) -> tuple[ZipMember, ...]:
    infos = archive.infolist()
    for info in infos:
        require_plain_name(path, info)
    # `ZipInfo.is_dir` fails at an empty name before Python 3.12.
    folders = [info for info in infos if info.filename.endswith("/")]
    files = [info for info in infos if not info.filename.endswith("/")]
    prefetch(str(path), map(_beginning, infos))
    members = tuple(_member(path, info, read_at, stamp) for info in files)
    _require_different(members)
    extents = [Extent(info, one.packed.offset + one.packed.size) for info, one in zip(files, members, strict=True)]
    extents += [Extent(info, _folder_end(path, info, read_at)) for info in folders]
    require_apart(path, extents, archive.start_dir, read_at)
    return members


def _require_different(members: Iterable[ZipMember]) -> None:
    """Raise `InputError` for members of one name."""
    names: set[str] = set()
    for member in members:
        if member.name in names:
            raise InputError(member.source, "is there twice", expected="one member of each name", remedy=AGAIN)
        names.add(member.name)


def _folder_end(path: Path, info: zipfile.ZipInfo, read_at: ReadAt) -> int:
    """Return where an entry of a folder ends."""
    return _find_content(f"{path}!{info.filename}", info, read_at) + info.compress_size


def _require_end(path: Path, archive: zipfile.ZipFile, file: IO[bytes]) -> None:
    def read(size: int, offset: int) -> bytes:
        file.seek(offset)
        return file.read(size)

    require_whole_end(path, archive.infolist(), archive.start_dir, file.seek(0, os.SEEK_END), read)


def _directory_error(path: Path, error: Exception) -> InputError:
    """Return the error for a directory that can't be read; the library calls every failure to read damage."""
    reason = error.__context__ if isinstance(error, zipfile.BadZipFile) else error
    if isinstance(reason, OSError) and reason.errno not in {None, errno.EINVAL}:
        return read_error(path, reason)
    return InputError(path, f"a damaged archive ({error})", remedy="Build or download it again.")


def _beginning(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range of what is read of every member: its own header, and its first bytes."""
    size = MOST_OF_HEADER + len(info.orig_filename.encode(errors="replace")) + min(info.compress_size, HEAD_PIECE)
    return info.header_offset, info.header_offset + size


def _reader_at(path: Path, descriptor: int) -> ReadAt:
    source = source_at(str(path))
    if source is None:
        return partial(read_at, descriptor)
    return lambda size, offset: source.read(offset, min(offset + size, source.size)) if offset < source.size else b""


def _member(path: Path, info: zipfile.ZipInfo, read_at: ReadAt, stamp: FileStamp) -> ZipMember:
    source = f"{path}!{info.filename}"
    if info.flag_bits & 1 or info.compress_type not in {STORED, DEFLATED}:
        how = "encrypted" if info.flag_bits & 1 else f"packed by method {info.compress_type}"
        raise InputError(source, how, expected="a stored or deflated member, as installers read")
    content = _find_content(source, info, read_at)
    packed = FileRange(str(path), content, info.compress_size, stamp)
    return ZipMember(info.filename, info.external_attr >> 16, info.compress_type, info.file_size, info.CRC, packed)


def _find_content(source: str, info: zipfile.ZipInfo, read_at: ReadAt) -> int:
    """Return where the packed bytes of a member begin; its own header has to say what the directory does."""
    header = read_local_header(read_at, info.header_offset)
    if header is None:
        raise InputError(source, "no member at the place that the directory names", expected="a whole archive")
    if header.name.decode("utf-8" if header.flags & _UTF8_FLAG else "cp437") != info.orig_filename:
        raise InputError(
            source, f"calls itself {quoted(header.name)}", expected="the name in the directory", remedy=AGAIN
        )
    promised = (info.compress_type, info.CRC, info.compress_size, info.file_size)
    if not header.agrees_with(*promised):
        found = f"has method {header.method}, checksum {header.crc32:08x} and sizes {header.packed_size}, {header.size}"
        expected = "{}, {:08x} and {}, {} as in the directory".format(*promised)
        raise InputError(source, found, expected=expected, remedy=AGAIN)
    return header.content
