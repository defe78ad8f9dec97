"""Provides member content that can be read repeatedly by range, content digests, and tar files as such content."""

from __future__ import annotations

import hashlib
import tarfile
import threading
from bisect import bisect_right
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import msgspec
from zlib_ng import zlib_ng

from rocwheel.core.patch import FilePatch
from rocwheel.core.reading import FileRange, iter_pieces, load, release_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from rocwheel.core.reading import Data


class Content(Protocol):
    """A source of ``size`` bytes. Implementations are plain values, so that any worker can open them."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def open(self, start: int, stop: int) -> AbstractContextManager[list[memoryview]]:
        """Yield the bytes from ``start`` to ``stop`` as a few buffers, which are valid only inside the block.

        Bytes from a file are read into new memory. Raises the same errors as `FileRange.read`.
        """


class BytesContent(msgspec.Struct, frozen=True):
    """Bytes in memory, such as a generated file."""

    data: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield a view of the bytes."""
        yield [memoryview(self.data)[start:stop]]


class FileContent(msgspec.Struct, frozen=True):
    """A range of a file, without changes."""

    source: FileRange

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.source.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Read the range of the file and yield it."""
        yield [memoryview(self.source.part(start, stop).read())]


class PatchedContent(msgspec.Struct, frozen=True):
    """A file with a patch, which is applied while the file is read."""

    source: FileRange
    patch: FilePatch

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.patch.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield the patched range. If the range has no changes, yield the original bytes without copying them."""
        if self.patch.is_hole(start, stop):
            # For bytes that are never written, the system maps the same page of zeros repeatedly.
            yield [memoryview(bytes(stop - start))]
            return
        with self.source.view() as old:
            parts = self.patch.apply(old, start, stop)
            data = load(parts[0]) if len(parts) == 1 else memoryview(_copied(parts, stop - start))
        yield [data]


class EditedContent:
    """A file with an edit that is planned only when needed, such as a new run path or compressed device code.

    ``edit`` identifies the edit: edits that produce different content from the same file have different values.
    ``plan`` may use the executor that is passed to it. An edit is costly if planning it takes longer than reading the
    file.
    """

    def __init__(
        self, source: FileRange, edit: bytes, plan: Callable[[Executor | None], Content], *, is_costly: bool
    ) -> None:
        self.source = source
        self.edit = edit
        self.is_costly = is_costly
        self.source_sha256 = b""
        """The hash of the unedited file, or empty until the hash is known."""
        self._plan = plan
        self._planned: Content | None = None
        self._lock = threading.Lock()

    def planned(self, executor: Executor | None = None) -> Content:
        """Return the edited file. Workers must not pass an executor, because they would wait for each other."""
        with self._lock:
            if self._planned is None:
                self._planned = self._plan(executor)
            return self._planned

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.planned().size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield a range of the edited file."""
        with self.planned().open(start, stop) as buffers:
            yield buffers


class SequenceContent:
    """Several pieces of content in sequence, such as the members of a tar with their headers.

    ``joints`` contains the best offsets at which to cut, in ascending order. Each joint depends only on the bytes after
    it, so it moves together with these bytes.
    """

    def __init__(self, parts: tuple[Content, ...], joints: tuple[int, ...] = ()) -> None:
        self.parts = parts
        self.joints = joints
        self._ends = tuple(accumulate(part.size for part in parts))

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._ends[-1] if self._ends else 0

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield the range from the single part that contains it, or a copy of the range if it spans several parts."""
        # The parts that overlap the range, with the range inside each part.
        touched = []
        for index in range(bisect_right(self._ends, start), len(self.parts)):
            part = self.parts[index]
            begin = self._ends[index] - part.size
            if begin >= stop:
                break
            if part.size:
                touched.append((part, max(start - begin, 0), min(stop - begin, part.size)))
        if len(touched) == 1:
            part, part_start, part_stop = touched[0]
            with part.open(part_start, part_stop) as buffers:
                yield buffers
        else:
            yield [memoryview(_gathered(touched, stop - start))]


def _copied(parts: list[Data], size: int) -> bytearray:
    data = bytearray(size)
    position = 0
    for part in parts:
        for piece in iter_pieces(part):
            data[position : position + len(piece)] = piece
            position += len(piece)
    return data


def _gathered(pieces: list[tuple[Content, int, int]], size: int) -> bytearray:
    data = bytearray(size)
    position = 0
    for content, start, stop in pieces:
        with content.open(start, stop) as buffers:
            for buffer in buffers:
                data[position : position + len(buffer)] = buffer
                position += len(buffer)
    return data


_STEP = 16 << 20


class Digest(msgspec.Struct, frozen=True):
    """The CRC-32, SHA-256, and size of a member's bytes."""

    crc32: int
    sha256: bytes
    size: int


class Hasher:
    """Computes the digest of bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._crc32, self._sha256, self._size = 0, hashlib.sha256(), 0

    def update(self, data: bytes | memoryview) -> None:
        """Add bytes to the digest, and release pages of mapped files so that memory use doesn't grow."""
        view = memoryview(data)
        for start in range(0, len(view), _STEP):
            part = view[start : start + _STEP]
            self._crc32 = zlib_ng.crc32(part, self._crc32)
            self._sha256.update(part)
            release_pages(part)
        self._size += len(view)

    def digest(self) -> Digest:
        """Return the digest of all bytes added so far."""
        return Digest(self._crc32, self._sha256.digest(), self._size)


def digest_bytes(data: bytes | memoryview) -> Digest:
    """Return the digest of ``data``."""
    hasher = Hasher()
    hasher.update(data)
    return hasher.digest()


def digest_content(content: Content) -> Digest:
    """Return the digest of ``content``, which is read in steps of 16 MiB."""
    hasher = Hasher()
    _feed(hasher, content)
    return hasher.digest()


def _feed(hasher: Hasher, content: Content) -> None:
    if isinstance(content, SequenceContent):
        # Part by part, because opening a range of several parts copies it.
        for part in content.parts:
            _feed(hasher, part)
        return
    for start in range(0, content.size, _STEP):
        with content.open(start, min(start + _STEP, content.size)) as buffers:
            for buffer in buffers:
                hasher.update(buffer)


_RECORD = tarfile.RECORDSIZE
_JOINT_EVERY = 32
"""The average number of members between two joints.

With typical file sizes, this number of members totals a few megabytes.
"""


class TarFile(msgspec.Struct, frozen=True):
    """A regular file in a tar."""

    path: str
    mode: int
    content: Content


class TarLink(msgspec.Struct, frozen=True):
    """A symlink in a tar, with its target as raw text."""

    path: str
    text: str


def tar_content(members: Iterable[TarFile | TarLink], *, mtime: int) -> SequenceContent:
    """Return the bytes of a tar with these members, owned by root and dated ``mtime`` seconds after 1970."""
    groups = [(member.path, tuple(_parts(member, mtime))) for member in members]
    parts = [part for _, group in groups for part in group]
    size = sum(part.size for part in parts) + 2 * tarfile.BLOCKSIZE
    end = 2 * tarfile.BLOCKSIZE + -size % _RECORD
    return SequenceContent((*parts, BytesContent(bytes(end))), _joints(groups))


def _joints(groups: Sequence[tuple[str, tuple[Content, ...]]]) -> tuple[int, ...]:
    """Return the offsets of the members at which the tar can be cut, which depend only on the members' paths."""
    starts = accumulate((sum(part.size for part in group) for _, group in groups), initial=0)
    return tuple(
        start
        for start, (path, _) in zip(starts, groups, strict=False)
        if start and zlib_ng.crc32(path.encode(errors="surrogateescape")) % _JOINT_EVERY == 0
    )


def _parts(member: TarFile | TarLink, mtime: int) -> Iterator[Content]:
    info = tarfile.TarInfo(member.path)
    info.mtime = mtime
    if isinstance(member, TarLink):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, member.text, 0o777
        yield BytesContent(info.tobuf(tarfile.PAX_FORMAT))
        return
    size = member.content.size
    info.size, info.mode = size, member.mode
    yield BytesContent(info.tobuf(tarfile.PAX_FORMAT))
    yield member.content
    if padding := -size % tarfile.BLOCKSIZE:
        yield BytesContent(bytes(padding))
