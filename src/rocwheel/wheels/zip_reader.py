"""Reads the members of ZIP archives (APPNOTE.TXT 6.3): ranges of packed bytes, and verified unpacked bytes."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, TypeAlias, cast

import msgspec
from zlib_ng import zlib_ng

from rocwheel.binary.kind import HEAD_SIZE
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.core.workers import run_in_background
from rocwheel.wheels.content import Digest
from rocwheel.wheels.member_compression import STORED
from rocwheel.wheels.zip_headers import AGAIN, HEAD_PIECE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    Writing: TypeAlias = Callable[[bytes], None]
    from collections.abc import Callable


_DAMAGE = cast("type[Exception]", zlib_ng.error)
_PIECE = 1 << 20
_MOST_TEXT = 64 << 20
MOST_METADATA = 2 << 20
"""The maximum size of METADATA, in bytes. The largest METADATA in 967 published wheels has 233 KB (mujoco 3.14.0)."""
_MOST_OF_INFO = {
    "METADATA": MOST_METADATA,
    "RECORD": 16 << 20,
    "WHEEL": 256 << 10,
    "entry_points.txt": 256 << 10,
}
"""The maximum sizes of text files in ``.dist-info``, in bytes.

The largest text files in the same wheels are a RECORD of 1.9 MB for 16,235 files (cmeel_boost 1.90.0), an
``entry_points.txt`` of 2.4 KB (setuptools 84.0.0), and a WHEEL of 224 bytes (zope_interface 8.6).
"""
_TAKEN_BESIDE = 32 << 20
"""The minimum size in bytes for which a second thread hashes and writes the bytes that this thread inflates."""


class ZipMember(msgspec.Struct, frozen=True):
    """One file in an archive.

    Sizes are in bytes. ``mode`` contains all 16 Unix bits, or is 0 if the archive doesn't specify a mode.
    """

    name: str
    mode: int
    method: int
    size: int
    crc32: int
    packed: FileRange

    @property
    def source(self) -> str:
        """The member's name as shown in messages, which includes its archive."""
        return f"{self.packed.path}!{self.name}"


def iter_member(member: ZipMember, *, copy_to: Writing | None = None) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces. Raises `InputError` if they don't match the central directory.

    ``copy_to`` is called with the packed bytes as they are read.
    """
    size = crc32 = 0
    for piece in _pieces(member, copy_to):
        size += len(piece)
        crc32 = zlib_ng.crc32(piece, crc32)
        if size > member.size:
            break
        yield piece
    if (size, crc32) != (member.size, member.crc32):
        found = f"has {count(size, 'byte')} with checksum {crc32:08x}"
        raise InputError(
            member.source, found, expected=f"{member.size} bytes with checksum {member.crc32:08x}", remedy=AGAIN
        )


def iter_packed(member: ZipMember, size: int = _PIECE) -> Iterator[bytes]:
    """Yield the packed bytes unchanged, in pieces."""
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
                _require_none_behind(member, inflater.unused_data)
                waiting = inflater.unconsumed_tail
        yield inflater.flush()
    except _DAMAGE as e:
        raise InputError(member.source, f"can't be unpacked ({e})", remedy=AGAIN) from e
    if not inflater.eof:
        raise InputError(member.source, "the packed bytes end too early", expected="a complete stream", remedy=AGAIN)


def _require_none_behind(member: ZipMember, behind: bytes) -> None:
    """Raise `InputError` if there are bytes after the end of the packed stream.

    A program that reads the archive as a stream would look for the next member there. A program that uses the central
    directory would skip these bytes.
    """
    if behind:
        found = "has extra bytes after the end of its packed bytes"
        raise InputError(member.source, found, expected="no extra bytes", remedy=AGAIN)


def hash_member(member: ZipMember, algorithm: str, advance: Callable[[int], object] = SILENT.advance) -> bytes:
    """Return the hash of the unpacked bytes. Raises `InputError` if they don't match the central directory.

    ``advance`` is called repeatedly with the number of bytes that were hashed.
    """
    hasher = hashlib.new(algorithm)
    for piece in iter_member(member):
        hasher.update(piece)
        advance(len(piece))
    return hasher.digest()


def digest_member(member: ZipMember, *, copy_to: Writing | None = None) -> Digest:
    """Return the digest of the unpacked bytes without loading all of them; for the arguments, see `iter_member`."""
    sha256 = hashlib.sha256()
    for piece in iter_member(member, copy_to=copy_to):
        sha256.update(piece)
    return Digest(member.crc32, sha256.digest(), member.size)


def read_member(member: ZipMember) -> bytes:
    """Return the unpacked bytes of a small member, such as a metadata file. Raises `InputError` for a large member."""
    folder, _, name = member.name.rpartition("/")
    is_info = folder.endswith(".dist-info") and "/" not in folder
    most = _MOST_OF_INFO.get(name, _MOST_TEXT) if is_info else _MOST_TEXT
    if member.size > most:
        found, expected = f"has {count(member.size, 'byte')}", f"at most {most} bytes for this file type"
        raise InputError(member.source, found, expected=expected, remedy="Build or download the wheel again.")
    return b"".join(iter_member(member))


def member_head(member: ZipMember) -> bytes:
    """Return the first `HEAD_SIZE` bytes of a member. Raises `InputError` if these bytes are damaged."""
    head = b""
    with closing(_pieces(member, size=HEAD_PIECE)) as pieces:
        for piece in pieces:
            head += piece[:HEAD_SIZE]
            if len(head) >= HEAD_SIZE:
                break
    return head[:HEAD_SIZE]


@contextmanager
def open_content(member: ZipMember, *, limit: int | None = None) -> Iterator[FileRange]:
    """Yield the unpacked bytes like `open_unpacked`, but without their digest.

    A stored member in a remote archive is read only on demand, so its checksum isn't verified.
    """
    if member.method == STORED and member.packed.is_remote:
        yield member.packed
        return
    with open_unpacked(member, limit=limit) as (unpacked, _):
        yield unpacked


@contextmanager
def open_unpacked(member: ZipMember, *, limit: int | None = None) -> Iterator[tuple[FileRange, Digest]]:
    """Yield the unpacked bytes as a range, with their digest.

    A stored member is a range of the archive. A deflated member is unpacked into an unnamed temporary file, so that a
    library of half a gigabyte doesn't take up memory. The file is deleted when the block ends. Raises `InputError` if a
    member is damaged or a deflated member has more than ``limit`` bytes, and `WorkError` if the temporary file can't be
    written. Both errors mention the member.
    """
    if member.method == STORED:
        yield member.packed, digest_member(member)
        return
    if limit is not None and member.size > limit:
        remedy = "Set a higher limit if you trust the file."
        raise InputError(
            member.source, f"unpacks to {count(member.size, 'byte')}", expected=f"at most {limit}", remedy=remedy
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

    with run_in_background(take) if member.size >= _TAKEN_BESIDE else nullcontext(take) as give:
        for piece in iter_member(member):
            give(piece)
    return Digest(member.crc32, sha256.digest(), member.size)


_LEAST = 1 << 20
"""The size in bytes below which members are unpacked again, because that is cheaper than keeping a file open."""
_MOST = 64
_MOST_BYTES = 4 << 30


class UnpackedMembers:
    """The digests of members, and unnamed files with the bytes of large members, up to a maximum number and total size.

    The files use at most half of the free space on their disk, so that other members can still be unpacked. Several
    threads may share an instance. `close` deletes the files. If a wheel has changed, its members are no longer found,
    because they have a different stamp.
    """

    def __init__(self, *, least: int = _LEAST, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self.digests: dict[ZipMember, Digest] = {}
        """The digests of members that were read completely and whose checksums matched."""
        self._least, self._most, self._room = least, most, most_bytes
        self._held = 0
        self._kept: dict[ZipMember, tuple[ExitStack, FileRange]] = {}
        self._lock = threading.Lock()

    def digest(self, member: ZipMember) -> Digest:
        """Return the result of `digest_member`, which is computed only once for each member."""
        if member not in self.digests:
            self.digests[member] = digest_member(member)
        return self.digests[member]

    def find(self, member: ZipMember) -> FileRange | None:
        """Return the bytes of a member, or `None` if they aren't stored.

        They are available until `keep_only` removes them.
        """
        found = self._kept.get(member)
        return found[1] if found else None

    @contextmanager
    def open(self, member: ZipMember) -> Iterator[tuple[FileRange, Digest]]:
        """Open a member like `open_unpacked`, but store the unpacked bytes for the next call if there is space."""
        if found := self.find(member):
            yield found, self.digests[member]
            return
        with ExitStack() as stack:
            unpacked, digest = stack.enter_context(open_unpacked(member))
            self.digests[member] = digest
            yield unpacked, digest
            with self._lock:
                takes = self._least <= member.size <= self._room and self._most > 0
                takes = takes and self._held + member.size <= _free_at(unpacked.path)
                if takes:
                    self._count(member.size)
            if takes:
                self._kept[member] = (stack.pop_all(), unpacked)

    @contextmanager
    def open_content(self, member: ZipMember) -> Iterator[FileRange]:
        """Open a member like the `open_content` function, but store the unpacked bytes as `open` does."""
        if member.method == STORED and member.packed.is_remote:
            with open_content(member) as content:
                yield content
            return
        with self.open(member) as (unpacked, _):
            yield unpacked

    def _count(self, size: int, number: int = 1) -> None:
        self._most -= number
        self._room -= size
        self._held += size

    def keep_only(self, is_wanted: Callable[[ZipMember], bool]) -> None:
        """Close the files of all members that aren't needed, to make space for other members."""
        for member in [member for member in self._kept if not is_wanted(member)]:
            self._kept.pop(member)[0].close()
            with self._lock:
                self._count(-member.size, -1)

    def close(self) -> None:
        """Close all files."""
        self.keep_only(lambda _: False)


def _free_at(path: str) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
