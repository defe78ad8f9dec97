"""Reading of ZIP archives member by member (APPNOTE.TXT 6.3): packed bytes by range, unpacked ones as a stream."""

from __future__ import annotations

import errno
import hashlib
import operator
import os
import struct
import zipfile
from collections import deque
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from typing import IO, TYPE_CHECKING, TypeAlias, cast

import msgspec
from zlib_ng import zlib_ng

from rocwheel.binary.kind import HEAD_SIZE
from rocwheel.distributions.content.digest import Digest
from rocwheel.distributions.packing.compression import DEFLATED, STORED
from rocwheel.distributions.zip.local_header import MOST_OF_HEADER, ReadAt, read_local_header
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_stamp import FileStamp
from rocwheel.foundation.files.regular_files import open_regular, read_at
from rocwheel.foundation.files.stand_ins import prefetch, source_at
from rocwheel.foundation.files.temporary_file import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.foundation.quoting import quoted
from rocwheel.foundation.workers import call_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    Writing: TypeAlias = Callable[[bytes], None]

__all__ = [
    "ZipMember",
    "check_member",
    "digest_member",
    "iter_member",
    "iter_packed",
    "member_head",
    "open_content",
    "open_unpacked",
    "read_directory",
    "read_member",
]

_UTF8_FLAG = 0x800
_DAMAGED_ARCHIVE = (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, OverflowError, ValueError, struct.error)
_DAMAGE = cast("type[Exception]", zlib_ng.error)
_PIECE = 1 << 20
_HEAD_PIECE = 512
"""Packed bytes that nearly always hold the first `HEAD_SIZE` unpacked ones."""
_MOST_TEXT = 64 << 20
_TAKEN_BESIDE = 32 << 20
"""Members of this size on, in bytes, are hashed and written by another thread than the one that inflates them."""
_MOST_UNPACKED = 8 << 30
_AGAIN = "It is damaged: build or download it again."


class ZipMember(msgspec.Struct, frozen=True):
    """One file of an archive; sizes in bytes, ``mode`` all 16 bits of Unix, 0 when the archive has none."""

    name: str
    mode: int
    method: int
    size: int
    crc32: int
    packed: FileRange

    @property
    def source(self) -> str:
        """How messages name the member: with its archive."""
        return f"{self.packed.path}!{self.name}"


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
            raise InputError(member.source, "is there twice", expected="one member of each name", remedy=_AGAIN)
        if start < stop:
            raise InputError(member.source, f"shares bytes with {before}", expected="bytes of its own", remedy=_AGAIN)
        names.add(member.name)
        stop, before = member.packed.offset + member.packed.size, member.name
    if stop > start_of_directory:
        msg = f"{before} reaches into the directory"
        raise zipfile.BadZipFile(msg)


def _beginning(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range of what is read of every member: its own header, and its first bytes."""
    size = MOST_OF_HEADER + len(info.orig_filename.encode(errors="replace")) + min(info.compress_size, _HEAD_PIECE)
    return info.header_offset, info.header_offset + size


def _reader_at(path: Path, descriptor: int) -> ReadAt:
    source = source_at(str(path))
    if source is None:
        return partial(read_at, descriptor)
    return lambda size, offset: source.read(offset, min(offset + size, source.size)) if offset < source.size else b""


def _member(path: Path, info: zipfile.ZipInfo, read_at: ReadAt, stamp: FileStamp) -> ZipMember:
    if not info.filename:
        raise InputError(path, "has a member without a name", remedy="Build or download it again.")
    if info.flag_bits & 1 or info.compress_type not in {STORED, DEFLATED}:
        how = "encrypted" if info.flag_bits & 1 else f"packed by method {info.compress_type}"
        msg = f"{path}!{info.filename}"
        raise InputError(msg, how, expected="a stored or deflated member, as installers read")
    header = read_local_header(read_at, info.header_offset)
    if header is None:
        msg = f"{path}!{info.filename}"
        raise InputError(msg, "no member at the place that the directory names", expected="a whole archive")
    if header.name.decode("utf-8" if header.flags & _UTF8_FLAG else "cp437") != info.orig_filename:
        msg = f"{path}!{info.filename}"
        raise InputError(
            msg, f"calls itself {quoted(header.name)}", expected="the name in the directory", remedy=_AGAIN
        )
    promised = (info.compress_type, info.CRC, info.compress_size, info.file_size)
    if not header.agrees_with(*promised):
        msg = f"{path}!{info.filename}"
        found = f"has method {header.method}, checksum {header.crc32:08x} and sizes {header.packed_size}, {header.size}"
        expected = "{}, {:08x} and {}, {} as in the directory".format(*promised)
        raise InputError(msg, found, expected=expected, remedy=_AGAIN)
    packed = FileRange(str(path), header.content, info.compress_size, stamp)
    return ZipMember(info.filename, info.external_attr >> 16, info.compress_type, info.file_size, info.CRC, packed)


def iter_member(member: ZipMember, *, copy_to: Writing | None = None) -> Iterator[bytes]:
    """Yield the unpacked bytes piece by piece; raise `InputError` when they are not what the directory promises.

    ``copy_to`` is called with the packed bytes that they come from, as they are read.
    """
    size = crc32 = 0
    for piece in _pieces(member, copy_to):
        size += len(piece)
        crc32 = zlib_ng.crc32(piece, crc32)
        if size > member.size:
            break
        yield piece
    if (size, crc32) != (member.size, member.crc32):
        found = f"{count(size, 'byte')} with checksum {crc32:08x}"
        raise InputError(member.source, found, expected=f"{member.size} with {member.crc32:08x}", remedy=_AGAIN)


def iter_packed(member: ZipMember, size: int = _PIECE) -> Iterator[bytes]:
    """Yield the packed bytes as they are, in pieces."""
    for start in range(0, member.packed.size, size):
        yield member.packed.part(start, min(start + size, member.packed.size)).read()


def _packed(member: ZipMember, copy_to: Writing | None, size: int = _PIECE) -> Iterator[bytes]:
    for piece in iter_packed(member, size):
        if copy_to is not None:
            copy_to(piece)
        yield piece


def _pieces(member: ZipMember, copy_to: Writing | None = None, size: int = _PIECE) -> Generator[bytes, None, None]:
    if member.method == STORED:
        yield from _packed(member, copy_to, size)
        return
    inflater = zlib_ng.decompressobj(-15)
    try:
        for piece in _packed(member, copy_to, size):
            waiting = piece
            while waiting:
                yield inflater.decompress(waiting, 4 * _PIECE)
                waiting = inflater.unconsumed_tail
        yield inflater.flush()
    except _DAMAGE as e:
        raise InputError(member.source, f"can't be unpacked ({e})", remedy=_AGAIN) from e


def check_member(member: ZipMember) -> None:
    """Unpack a member and raise `InputError` when its bytes are not what the directory promises."""
    deque(iter_member(member), maxlen=0)


def digest_member(member: ZipMember, *, copy_to: Writing | None = None) -> Digest:
    """Return the digest of the unpacked bytes, which are never in memory as a whole; otherwise as `iter_member`."""
    sha256 = hashlib.sha256()
    for piece in iter_member(member, copy_to=copy_to):
        sha256.update(piece)
    return Digest(member.crc32, sha256.digest(), member.size)


def read_member(member: ZipMember) -> bytes:
    """Return the unpacked bytes of a small member, such as a metadata file; raises `InputError` for a large one."""
    if member.size > _MOST_TEXT:
        raise InputError(member.source, count(member.size, "byte"), expected=f"at most {_MOST_TEXT} for such a file")
    return b"".join(iter_member(member))


def member_head(member: ZipMember) -> bytes:
    """Return the first `HEAD_SIZE` bytes of a member; raises `InputError` when it is damaged there."""
    head = b""
    with closing(_pieces(member, size=_HEAD_PIECE)) as pieces:
        for piece in pieces:
            head += piece[:HEAD_SIZE]
            if len(head) >= HEAD_SIZE:
                break
    return head[:HEAD_SIZE]


@contextmanager
def open_content(member: ZipMember, *, limit: int = _MOST_UNPACKED) -> Iterator[FileRange]:
    """Yield the unpacked bytes as `open_unpacked` does, without their digest.

    Of a stored member of an archive that is elsewhere, which is read as far as somebody asks for its bytes, the
    checksum is not compared.
    """
    if member.method == STORED and source_at(member.packed.path):
        yield member.packed
        return
    with open_unpacked(member, limit=limit) as (unpacked, _):
        yield unpacked


@contextmanager
def open_unpacked(member: ZipMember, *, limit: int = _MOST_UNPACKED) -> Iterator[tuple[FileRange, Digest]]:
    """Yield the unpacked bytes as a range, with their digest.

    A stored member is a range of the archive. A deflated one is unpacked into a nameless temporary file, which ends
    with the block: a library of half a gigabyte takes no memory. Raises `InputError` for a damaged member, and for one
    to unpack of more than ``limit`` bytes; `WorkError` when that file can't be written. Both name the member.
    """
    if member.method == STORED:
        yield member.packed, digest_member(member)
        return
    if member.size > limit:
        remedy = "Set a higher limit if you trust the file."
        raise InputError(
            member.source, f"{count(member.size, 'byte')} when unpacked", expected=f"at most {limit}", remedy=remedy
        )
    with ExitStack() as stack:
        try:
            spool = stack.enter_context(open_temporary())
            require_room(spool, member.size)
            digest = _unpack(member, spool)
        except OSError as e:
            raise no_room(member.source, f"its {member.size} unpacked bytes", e) from e
        yield FileRange(path_of(spool), 0, member.size), digest


def _unpack(member: ZipMember, target: IO[bytes]) -> Digest:
    sha256 = hashlib.sha256()

    def take(piece: bytes) -> None:
        sha256.update(piece)
        write_all(target, piece)

    with call_beside(take) if member.size >= _TAKEN_BESIDE else nullcontext(take) as give:
        for piece in iter_member(member):
            give(piece)
    return Digest(member.crc32, sha256.digest(), member.size)
