"""Reads regular files that other processes can change in the meantime, and raises an error if they change.

Files that others can write are read only with pread(2). Mapping such a file would be dangerous: if it is truncated or
its file system is full, touching a page in the mapping ends the process (SIGBUS).
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
import threading
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from rocwheel.core.errors import InputError, WorkError, is_fault, read_error
from rocwheel.core.messages import count
from rocwheel.core.remote_file import ByteSource, SourceFile, source_of
from rocwheel.core.scratch import range_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_ANY = -1
"""The value for fields of a shared file's stamp that differ between machines."""

_GRANULARITY = 2_000_000_000
"""The time resolution in nanoseconds. FAT has the coarsest timestamps."""


class FileStamp(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The identity of a file at a path and its last modification (stat(2)). Times are in nanoseconds."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    links: int
    """The number of hard links. A new or removed link changes the file's status, but not its bytes."""

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Return the stamp of a file with this status."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink
        )

    @classmethod
    def at(cls, path: Path) -> FileStamp:
        """Return the stamp of the file at a path. Raises `InputError` if it can't be read."""
        try:
            return cls.of(path.stat())
        except OSError as e:
            raise read_error(str(path), e) from e

    def for_any_machine(self) -> FileStamp:
        """Return the stamp that every machine with access to the file sees: its size and modification time.

        Machines number file systems, and in some cases files, independently.
        """
        return FileStamp(_ANY, _ANY, self.size, self.modified, _ANY, _ANY)

    def require(self, status: os.stat_result, path: str) -> None:
        """Raise `ChangedFileError` unless the file at ``path``, which has this status, is the file with this stamp.

        Its hard links might have changed, for example, because an index or a backup links to it.
        """
        now = FileStamp.of(status)
        if self.device == _ANY:
            now = now.for_any_machine()
        if now != self and not self._has_other_links_alone(now):
            raise ChangedFileError(path, self._difference(now))

    def _has_other_links_alone(self, now: FileStamp) -> bool:
        # A file without links was removed or replaced.
        return now.links not in {0, self.links} and self == msgspec.structs.replace(
            now, changed=self.changed, links=self.links
        )

    def _difference(self, now: FileStamp) -> str:
        if (self.device, self.inode) != (now.device, now.inode):
            return "was replaced by another file while it was being read"
        if not now.links:
            return "was removed or replaced while it was being read"
        if self.size != now.size:
            return f"changed from {self.size} to {count(now.size, 'byte')} while it was being read"
        return "changed while it was being read"


def is_settled(stamp: FileStamp, read_at: int) -> bool:
    """Return whether a file or folder last changed long enough before it was read.

    Times are in nanoseconds since 1970. A date in the future was set explicitly. Writing to the file would replace that
    date, so the change would be visible.
    """
    modified = stamp.modified if stamp.modified <= read_at else 0
    return max(modified, stamp.changed) + _GRANULARITY <= read_at


class ChangedFileError(WorkError):
    """An input was changed, truncated, or replaced between its listing and the end of reading."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found, remedy="Run the command again, and don't change its inputs while it runs.")


_LARGEST = 64 << 20
"""The maximum size in bytes of a file that is read completely."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises `OSError`, including for a device, and for a pipe, which would block."""
    if source := source_of(path):
        return io.BufferedReader(SourceFile(path, source))
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it isn't a regular file", str(path))
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """Return the contents of a small file that the user passed, such as settings.

    Raises `OSError` in the same cases as `open_regular`, and for files above 64 MiB. No text file is that large, and
    processing such a file would take many times its size.
    """
    with open_regular(path) as file:
        if file.seek(0, os.SEEK_END) > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 20} MiB", str(path))
        file.seek(0)
        return file.read()


def read_if_readable(path: Path) -> bytes:
    """Return the contents of a small file, or no bytes if the file is missing or unreadable.

    Raises `InputError` if a disk fails, because the file may then contain anything. Raises `WorkError` if the process
    reaches a limit, such as the number of open files.
    """
    try:
        return read_regular(path)
    except OSError as e:
        if is_fault(e):
            raise read_error(path, e) from e
        return b""


def belongs_to_user(status: os.stat_result) -> bool:
    """Return whether only this user or root can have written a file: no one else owns it or has write permission."""
    return status.st_uid in {os.geteuid(), 0} and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def require_listable(folder: Path) -> None:
    """Raise `InputError` for a folder that can't be listed.

    Otherwise, patterns would match nothing, as in an empty folder.
    """
    try:
        os.scandir(folder).close()
    except OSError as e:
        raise read_error(folder, e) from e


def read_small(path: Path, most: int, *, expected: str) -> bytes:
    """Return the contents of an untrusted file of at most ``most`` bytes, where ``most`` is a multiple of 1 MiB.

    Raises `InputError` if the file is larger or can't be read. ``expected`` describes the expected file.
    """
    try:
        with open_regular(path) as file:
            data = file.read(most + 1)
    except OSError as e:
        raise read_error(path, e, expected=expected) from e
    if len(data) > most:
        raise InputError(path, f"is larger than {most >> 20} MiB", expected=expected)
    return data


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return ``size`` bytes of an open file from ``offset``, or fewer at its end. Raises `OSError`.

    pread(2) itself may return fewer bytes than requested, as on some network file systems.
    """
    data = os.pread(descriptor, size, offset)
    while 0 < len(data) < size and (more := os.pread(descriptor, size - len(data), offset + len(data))):
        data += more
    return data


@contextmanager
def open_unchanged(path: Path, stamp: FileStamp | None = None) -> Iterator[IO[bytes]]:
    """Open a file for reading in one pass, in the same way as `open_regular`.

    Raises `ChangedFileError` before the block if the file doesn't match ``stamp``. Also raises it at the end of the
    block if the file changed in the meantime, even if the block fails.
    """
    with open_regular(path) as file:
        if stamp is not None:
            stamp.require(os.fstat(file.fileno()), str(path))
        with _requiring(path, lambda: os.fstat(file.fileno())):
            yield file


@contextmanager
def unchanged(path: Path) -> Iterator[FileStamp]:
    """Yield the stamp of a file that the block reads by its path.

    At the end of the block, raises `ChangedFileError` if the file was changed or replaced in the meantime, even if the
    block fails. Raises `OSError` if the file doesn't exist.
    """
    with _requiring(path, path.stat) as stamp:
        yield stamp


@contextmanager
def _requiring(path: Path, read_status: Callable[[], os.stat_result]) -> Iterator[FileStamp]:
    stamp = FileStamp.of(read_status())
    try:
        yield stamp
    except Exception:
        # The change explains any apparent damage.
        stamp.require(read_status(), str(path))
        raise
    stamp.require(read_status(), str(path))


_RELEASED_FROM = 32 << 20
_RELEASE_INTERVAL = 0.05


@contextmanager
def mapped_range(path: str, offset: int, size: int) -> Iterator[memoryview]:
    """Map a range of a file that no one else can write to.

    Pages are read when they are accessed, and released at the end of the block.

    Raises `InputError` if the file can't be read.
    """
    if size == 0:
        yield memoryview(b"")
        return
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    try:
        with Path(path).open("rb") as file:
            mapping = mmap.mmap(file.fileno(), offset + size - start, access=mmap.ACCESS_READ, offset=start)
    except (OSError, ValueError) as e:
        error = e if isinstance(e, OSError) else OSError(errno.EINVAL, str(e))
        raise range_error(path, error) from e
    # Not closed explicitly, because the mapping ends with its last view.
    with _releasing_pages(mapping) if size >= _RELEASED_FROM else nullcontext():
        yield memoryview(mapping)[offset - start :]


@contextmanager
def _releasing_pages(mapping: mmap.mmap) -> Iterator[None]:
    """Release the pages of a large mapping periodically while a codec or a hash scans it.

    Accessed pages of a mapped file count as resident memory. After release, they stay in the page cache, so another
    access causes only a soft fault.
    """
    done = threading.Event()

    def release() -> None:
        while not done.wait(_RELEASE_INTERVAL):
            mapping.madvise(mmap.MADV_DONTNEED)

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def release_pages(data: Data) -> None:
    """Release the mapped pages of ``data``, if it belongs to a mapped file, after a part was scanned."""
    if isinstance(data, memoryview) and isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


_VIEW_PIECE = 4 << 20
_BLOCK = 64 << 10
_BLOCKS = 32
"""The number of blocks in the cache of a file's views. Headers and tables are read in many small steps."""


class Source(Protocol):
    """A range of a file, such as `rocwheel.core.reading.FileRange`."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def part(self, start: int, stop: int) -> Source:
        """Return the range from ``start`` to ``stop``, both relative to the start of this range."""

    def read(self) -> bytes:
        """Return the bytes of the range."""


class FileView:
    """The bytes of a file. Slices are also views, and ``bytes(view)`` reads the bytes.

    Several threads may share a view.

    Reading raises the same errors as the source. `load` and `iter_pieces` provide buffers for codecs.
    """

    __slots__ = ("_blocks", "_start", "_stop")

    def __init__(self, source: Source) -> None:
        self._blocks = _Blocks(source)
        self._start, self._stop = 0, source.size

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._stop - self._start

    def __getitem__(self, part: slice) -> FileView:
        """Return a view of a part, without reading."""
        start, stop, step = part.indices(len(self))
        assert step == 1, "views are contiguous"
        view = object.__new__(FileView)
        view._blocks = self._blocks
        view._start, view._stop = self._start + start, self._start + max(start, stop)
        return view

    def __bytes__(self) -> bytes:
        """Read the bytes."""
        return self._blocks.read(self._start, self._stop)


Data: TypeAlias = memoryview | FileView
"""The bytes of a file or of a part of it, in memory or not yet read."""


class _Blocks:
    """Reads a source, and caches the most recently used blocks."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, start: int, stop: int) -> bytes:
        if stop - start > _BLOCK:
            return self._source.part(start, stop).read()
        first, last = start // _BLOCK, max(stop - 1, start) // _BLOCK
        data = b"".join([self._block(number) for number in range(first, last + 1)]) if stop > start else b""
        return data[start - first * _BLOCK : stop - first * _BLOCK]

    def _block(self, number: int) -> bytes:
        with self._lock:
            block = self._kept.pop(number, None)
            if block is None:
                start = number * _BLOCK
                block = self._source.part(start, min(start + _BLOCK, self._source.size)).read()
            self._kept[number] = block
            if len(self._kept) > _BLOCKS:
                self._kept.popitem(last=False)
        return block


def load(data: Data) -> memoryview:
    """Return the bytes in memory, without copying bytes that are already in memory."""
    return data if isinstance(data, memoryview) else memoryview(bytes(data))


def join_data(parts: Iterable[Data]) -> bytes:
    """Return the concatenation of several parts."""
    return b"".join(map(load, parts))


def have_same_bytes(one: Data, other: Data) -> bool:
    """Return whether two sources have equal bytes. Only one piece of each is in memory at a time."""
    return len(one) == len(other) and all(a == b for a, b in zip(iter_pieces(one), iter_pieces(other), strict=True))


def iter_pieces(data: Data, size: int = _VIEW_PIECE) -> Iterator[memoryview]:
    """Yield the bytes in pieces of ``size``, so that only one piece at a time is in memory."""
    for start in range(0, len(data), size):
        yield load(data[start : start + size])


_READ_WHOLE = 1 << 20
"""The maximum size of ranges that `FileRange.view` reads at once."""
_READ_MOST = 1 << 30
"""The maximum size of a read call. On Linux, a single read returns slightly less than 2 GiB at most."""
_PIECE = 256 << 10
"""The read size for `FileRange.feed`, small enough for the cache of a single core."""


class FileRange(msgspec.Struct, frozen=True, order=True):
    """``size`` bytes from ``offset`` in the file ``path``: a complete file, or a member of an uncompressed archive."""

    path: str
    offset: int
    size: int
    stamp: FileStamp | None = None
    """The stamp of the file when it was listed, or `None` for an unnamed file, which no one else can write to."""

    @classmethod
    def whole(cls, path: Path) -> FileRange:
        """Return the range that covers all of ``path``. Raises `InputError` if the path isn't a regular file."""
        stamp = FileStamp.at(path)
        if not path.is_file() and not path.is_dir():
            raise read_error(str(path), OSError(errno.EINVAL, "it isn't a regular file"))
        return cls.stamped(path, stamp)

    @classmethod
    def stamped(cls, path: Path, stamp: FileStamp) -> FileRange:
        """Return the range that covers all of the file at ``path``, which had this stamp."""
        if source := source_of(path):
            return RemoteRange(str(path), 0, source.size, stamp, source=source)
        return FileRange(str(path), 0, stamp.size, stamp)

    @property
    def is_remote(self) -> bool:
        """Whether the bytes are remote, so that each read must fetch them."""
        return False

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both relative to the start of this range."""
        return msgspec.structs.replace(self, offset=self.offset + start, size=stop - start)

    def for_any_machine(self) -> FileRange:
        """Return the range in a form that other machines with access to the file can read."""
        return msgspec.structs.replace(self, stamp=self.stamp and self.stamp.for_any_machine())

    def read(self) -> bytes:
        """Return the bytes in the range.

        Raises `ChangedFileError` if the file differs from the listed file before or after reading, and `InputError` if
        it can't be read.
        """
        if self.size == 0:
            return b""
        with self._unchanged() as descriptor:
            pieces = []
            position, stop = self.offset, self.offset + self.size
            while position < stop:
                pieces.append(os.pread(descriptor, min(stop - position, _READ_MOST), position))
                if not pieces[-1]:
                    raise self._ended(position)
                position += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def feed(self, take: Callable[[memoryview], object]) -> None:
        """Pass the bytes in the range to ``take`` in pieces. Each piece is valid only during its call.

        Raises the same errors as `read`.
        """
        if self.size <= _PIECE:
            if self.size:
                take(memoryview(self.read()))
            return
        with self._unchanged() as descriptor:
            buffer = memoryview(bytearray(_PIECE))
            position, stop = self.offset, self.offset + self.size
            while position < stop:
                count = os.preadv(descriptor, [buffer[: stop - position]], position)
                if not count:
                    raise self._ended(position)
                take(buffer[:count])
                position += count

    def _ended(self, at: int) -> ChangedFileError:
        stop = self.offset + self.size
        return ChangedFileError(self.path, f"ends at byte {at} instead of {stop}")

    @contextmanager
    def view(self) -> Iterator[Data]:
        """Yield the range for random access. Bytes are read on demand.

        Each access raises the same errors as `read`, so all bytes are from the listed file.
        """
        if self.stamp is None:
            with mapped_range(self.path, self.offset, self.size) as data:
                yield data
        elif self.size <= _READ_WHOLE:
            yield memoryview(self.read())
        else:
            yield FileView(self)

    @contextmanager
    def _unchanged(self) -> Iterator[int]:
        """Yield a descriptor of the file. The stamp is checked before and after the block."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                self._require(descriptor)
                yield descriptor
                self._require(descriptor)
            finally:
                os.close(descriptor)
        except OSError as e:
            raise range_error(self.path, e) from e

    def _require(self, descriptor: int) -> None:
        if self.stamp is not None:
            self.stamp.require(os.fstat(descriptor), self.path)


class RemoteRange(FileRange, frozen=True, kw_only=True):
    """A range of a remote file. ``stamp`` belongs to its local placeholder, which doesn't contain the bytes."""

    source: ByteSource

    @property
    def is_remote(self) -> bool:
        """Whether the bytes are remote."""
        return True

    def read(self) -> bytes:
        """Return the bytes in the range.

        Raises the same errors as the source, and `ChangedFileError` if the source ends early.
        """
        stop = self.offset + self.size
        data = self.source.read(self.offset, stop) if self.offset < stop <= self.source.size else b""
        if len(data) < self.size:
            raise self._ended(self.source.size)
        return data

    def feed(self, take: Callable[[memoryview], object]) -> None:
        """Pass the bytes in the range to ``take`` in pieces. Raises the same errors as `read`."""
        for start in range(0, self.size, _READ_WHOLE):
            take(memoryview(self.part(start, min(start + _READ_WHOLE, self.size)).read()))
