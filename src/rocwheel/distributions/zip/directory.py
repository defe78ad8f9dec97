"""The directory of a ZIP archive (APPNOTE.TXT 6.3): its members, and what programs would read differently."""

from __future__ import annotations

import errno
import operator
import os
import struct
import zipfile
from functools import partial
from typing import TYPE_CHECKING

from rocwheel.distributions.packing.compression import DEFLATED, STORED
from rocwheel.distributions.zip.local_header import MOST_OF_HEADER, ReadAt, read_local_header
from rocwheel.distributions.zip.reader import AGAIN, HEAD_PIECE, ZipMember
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.regular_files import open_regular, read_at
from rocwheel.foundation.files.stand_ins import prefetch, source_at
from rocwheel.foundation.quoting import quoted

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
    that share bytes, and a member whose own header disagrees with the directory.
    """
    try:
        opened = open_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    try:
        with opened as file:
            stamp = FileStamp.of(os.fstat(file.fileno()))
            with zipfile.ZipFile(file) as archive:
                # `ZipInfo.is_dir` fails at an empty name before Python 3.12.
                infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
                prefetch(str(path), map(_beginning, infos))
                read_at = _reader_at(path, file.fileno())
                members = tuple(_member(path, info, read_at, stamp) for info in infos)
                _check_apart(infos, members, archive.start_dir)
            stamp.require(os.fstat(file.fileno()), str(path))
    except _DAMAGED_ARCHIVE as e:
        raise _directory_error(path, e) from e
    return members


def _directory_error(path: Path, error: Exception) -> InputError:
    """Return the error for a directory that can't be read; the library calls every failure to read damage."""
    reason = error.__context__ if isinstance(error, zipfile.BadZipFile) else error
    if isinstance(reason, OSError) and reason.errno not in {None, errno.EINVAL}:
        return read_error(path, reason)
    return InputError(path, f"a damaged archive ({error})", remedy="Build or download it again.")


def _check_apart(infos: Iterable[zipfile.ZipInfo], members: Iterable[ZipMember], start_of_directory: int) -> None:
    """Raise `InputError` for members of one name or that share bytes: a way to pack terabytes into megabytes."""
    names: set[str] = set()
    stop, before = 0, ""
    starts = (info.header_offset for info in infos)
    for start, member in sorted(zip(starts, members, strict=True), key=operator.itemgetter(0)):
        if member.name in names:
            raise InputError(member.source, "is there twice", expected="one member of each name", remedy=AGAIN)
        if start < stop:
            raise InputError(member.source, f"shares bytes with {before}", expected="bytes of its own", remedy=AGAIN)
        names.add(member.name)
        stop, before = member.packed.offset + member.packed.size, member.name
    if stop > start_of_directory:
        msg = f"{before} reaches into the directory"
        raise zipfile.BadZipFile(msg)


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
    if not info.filename:
        raise InputError(path, "has a member without a name", remedy="Build or download it again.")
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
