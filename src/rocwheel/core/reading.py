"""Reads regular files that others may write meanwhile: what was read is what was listed, or an error says so.

Files that somebody else can write are read by pread(2) alone. A map of such a file would be fatal: where it is
truncated, or its file system is full, touching a page of the map ends the process (SIGBUS).
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
"""What differs between machines, in the stamp of a file that they share."""

_GRANULARITY = 2_000_000_000
"""Nanoseconds; FAT has the coarsest times."""


class FileStamp(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Which file stands at a path, and when it was last written (stat(2)); times in nanoseconds."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    links: int
    """How many names it has, whose coming and going is a change, too, but none of its bytes."""

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Return the stamp of a file with this status."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink
        )

    @classmethod
    def at(cls, path: Path) -> FileStamp:
        """Return the stamp of the file at a path; raise `InputError` when it can't be read."""
        try:
            return cls.of(path.stat())
        except OSError as e:
            raise read_error(str(path), e) from e

    def for_any_machine(self) -> FileStamp:
        """Return the stamp as every machine sees it that shares the file: its size, and when it was last written.

        Machines number file systems, and some also files, as they like.
        """
        return FileStamp(_ANY, _ANY, self.size, self.modified, _ANY, _ANY)

    def require(self, status: os.stat_result, path: str) -> None:
        """Raise `ChangedFileError` unless the file at ``path``, which has this status, is the stamped one.

        It may have got or lost names meanwhile, as where an index or a backup links to it.
        """
        now = FileStamp.of(status)
        if self.device == _ANY:
            now = now.for_any_machine()
        if now != self and not self._has_other_links_alone(now):
            raise ChangedFileError(path, self._difference(now))

    def _has_other_links_alone(self, now: FileStamp) -> bool:
        # A file without a name was removed, or another one took its name.
        return now.links not in {0, self.links} and self == msgspec.structs.replace(
            now, changed=self.changed, links=self.links
        )

    def _difference(self, now: FileStamp) -> str:
        if (self.device, self.inode) != (now.device, now.inode):
            return "another file took its place while it was being read"
        if not now.links:
            return "was removed or replaced while it was being read"
        if self.size != now.size:
            return f"changed from {self.size} to {count(now.size, 'byte')} while it was being read"
        return "was written to while it was being read"


def is_settled(stamp: FileStamp, read_at: int) -> bool:
    """Return whether the last change to a file or folder lies far enough before its reading.

    Times are in nanoseconds since 1970. A date of the future is one that somebody gave the file: whoever writes to it
    takes that date off, and so leaves a trace.
    """
    modified = stamp.modified if stamp.modified <= read_at else 0
    return max(modified, stamp.changed) + _GRANULARITY <= read_at


class ChangedFileError(WorkError):
    """An input that something else wrote to, truncated or replaced between its listing and its last byte."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found, remedy="Leave the inputs alone until the work is done, and run it again.")


_LARGEST = 64 << 20
"""Bytes of a file that is read at once."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; raise `OSError` also for a device and for a pipe, which would block."""
    if source := source_of(path):
        return io.BufferedReader(SourceFile(path, source))
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """Return all of a small file that the user named, such as settings.

    Raises `OSError` as `open_regular` does, and for one of more than 64 MiB, which no text for us has: to read it would
    take many times its size.
    """
    with open_regular(path) as file:
        if file.seek(0, os.SEEK_END) > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 20} MiB", str(path))
        file.seek(0)
        return file.read()


def read_if_readable(path: Path) -> bytes:
    """Return all of a small file, nothing where it is absent or may not be read.

    Raises `InputError` where a disk fails, as the file may hold anything then, and `WorkError` at a limit of the
    process, such as that of open files.
    """
    try:
        return read_regular(path)
    except OSError as e:
        if is_fault(e):
            raise read_error(path, e) from e
        return b""


def require_listable(folder: Path) -> None:
    """Raise `InputError` for a folder that can't be listed: patterns find nothing in it, as if it were empty."""
    try:
        os.scandir(folder).close()
    except OSError as e:
        raise read_error(folder, e) from e


def read_small(path: Path, most: int, *, expected: str) -> bytes:
    """Return all of a file of a stranger, of which ``most`` bytes, whole MiB, are read at most.

    Raises `InputError` for a file that is larger or can't be read; ``expected`` says what it should be.
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
    """Return ``size`` bytes of an open file from ``offset``, fewer only where it ends; raises `OSError`.

    pread(2) itself may give less than it is asked for, as some network file systems do.
    """
    data = os.pread(descriptor, size, offset)
    while 0 < len(data) < size and (more := os.pread(descriptor, size - len(data), offset + len(data))):
        data += more
    return data


@contextmanager
def open_unchanged(path: Path, stamp: FileStamp | None = None) -> Iterator[IO[bytes]]:
    """Open a file to be read in one go, as `open_regular` does.

    Raises `ChangedFileError` at the end of the block, whatever it ends with, when the file has changed meanwhile, and
    before the block when it is not the file that had ``stamp``.
    """
    with open_regular(path) as file:
        if stamp is not None:
            stamp.require(os.fstat(file.fileno()), str(path))
        with _requiring(path, lambda: os.fstat(file.fileno())):
            yield file


@contextmanager
def unchanged(path: Path) -> Iterator[FileStamp]:
    """Yield the stamp of a file that the block reads by its path.

    Raises `ChangedFileError` at the end of the block, whatever it ends with, when the file has changed meanwhile, or
    another has taken its place; `OSError` when there is none.
    """
    with _requiring(path, path.stat) as stamp:
        yield stamp


@contextmanager
def _requiring(path: Path, read_status: Callable[[], os.stat_result]) -> Iterator[FileStamp]:
    stamp = FileStamp.of(read_status())
    try:
        yield stamp
    except Exception:
        # What looks like damage is the change.
        stamp.require(read_status(), str(path))
        raise
    stamp.require(read_status(), str(path))


_RELEASED_FROM = 32 << 20
_RELEASE_INTERVAL = 0.05


@contextmanager
def mapped_range(path: str, offset: int, size: int) -> Iterator[memoryview]:
    """Map a range of a file that nobody else can write; pages are read when touched and leave with the block.

    Raises `InputError` when the file can't be read.
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
    # Not closed by hand: the mapping ends with its last view, wherever that one is still held.
    with _releasing_pages(mapping) if size >= _RELEASED_FROM else nullcontext():
        yield memoryview(mapping)[offset - start :]


@contextmanager
def _releasing_pages(mapping: mmap.mmap) -> Iterator[None]:
    """Release the pages of a large mapping again and again while a codec or a hash passes over it.

    Touched pages of a mapped file count as resident memory; released ones are a soft fault away in the page cache.
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
    """Release the mapped pages of ``data``, if it belongs to a mapped file, once a part of it has been scanned."""
    if isinstance(data, memoryview) and isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


_VIEW_PIECE = 4 << 20
_BLOCK = 64 << 10
_BLOCKS = 32
"""Blocks that a file's views keep: headers and tables are read in many small steps."""


class Source(Protocol):
    """A range of a file, such as `rocwheel.core.reading.FileRange`."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def part(self, start: int, stop: int) -> Source:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""

    def read(self) -> bytes:
        """Return the bytes of the range."""


class FileView:
    """Bytes of a file: slices are views, too, ``bytes(view)`` reads; several threads may use it at once.

    Reading raises what the source raises. `load` and `iter_pieces` give codecs the buffers that they need.
    """

    __slots__ = ("_blocks", "_start", "_stop")

    def __init__(self, source: Source) -> None:
        self._blocks = _Blocks(source)
        self._start, self._stop = 0, source.size

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._stop - self._start

    def __getitem__(self, part: slice) -> FileView:
        """Return the view of a part; nothing is read."""
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
"""The bytes of a file or of a part of it, in memory or still to be read."""


class _Blocks:
    """Reads a source, and keeps the blocks that were used last."""

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
    """Return the bytes in memory; bytes that are there already are not copied."""
    return data if isinstance(data, memoryview) else memoryview(bytes(data))


def join_data(parts: Iterable[Data]) -> bytes:
    """Return several parts as one."""
    return b"".join(map(load, parts))


def have_same_bytes(one: Data, other: Data) -> bool:
    """Return whether two are equal; memory holds a piece of each at a time."""
    return len(one) == len(other) and all(a == b for a, b in zip(iter_pieces(one), iter_pieces(other), strict=True))


def iter_pieces(data: Data, size: int = _VIEW_PIECE) -> Iterator[memoryview]:
    """Yield the bytes in pieces of ``size``, so that memory holds one of them at a time."""
    for start in range(0, len(data), size):
        yield load(data[start : start + size])


_READ_WHOLE = 1 << 20
"""Ranges up to this size are read at once by `FileRange.view`."""
_READ_MOST = 1 << 30
"""What one call reads at most; Linux ends a read just below 2 GiB."""
_PIECE = 256 << 10
"""What `FileRange.feed` reads at a time: it stays in a core's own cache."""


class FileRange(msgspec.Struct, frozen=True, order=True):
    """``size`` bytes of the file ``path`` from ``offset``: a whole file, or a member of an uncompressed archive."""

    path: str
    offset: int
    size: int
    stamp: FileStamp | None = None
    """What the file was like when it was listed; none for a nameless file, which nobody else can write."""

    @classmethod
    def whole(cls, path: Path) -> FileRange:
        """Return the range that covers all of ``path``; raise `InputError` for what is no file, such as a device."""
        stamp = FileStamp.at(path)
        if not path.is_file() and not path.is_dir():
            raise read_error(str(path), OSError(errno.EINVAL, "it is not a regular file"))
        return cls.stamped(path, stamp)

    @classmethod
    def stamped(cls, path: Path, stamp: FileStamp) -> FileRange:
        """Return the range that covers all of the file at ``path``, which had this stamp."""
        if source := source_of(path):
            return RemoteRange(str(path), 0, source.size, stamp, source=source)
        return FileRange(str(path), 0, stamp.size, stamp)

    @property
    def is_remote(self) -> bool:
        """Whether the bytes are elsewhere, and each that is read has to be brought."""
        return False

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return msgspec.structs.replace(self, offset=self.offset + start, size=stop - start)

    def for_any_machine(self) -> FileRange:
        """Return the range as machines that share the file can read it."""
        return msgspec.structs.replace(self, stamp=self.stamp and self.stamp.for_any_machine())

    def read(self) -> bytes:
        """Return the bytes of the range.

        Raises `ChangedFileError` when the file is not the one that was listed, before or after the reading, and
        `InputError` when it can't be read.
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
        """Give the bytes of the range to ``take``, piece by piece; each is valid during its call alone.

        Raises what `read` does.
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
        return ChangedFileError(self.path, f"ends at byte {at} of {stop} that it was to have")

    @contextmanager
    def view(self) -> Iterator[Data]:
        """Yield the range for those who look at parts of it; bytes are read when they are asked for.

        Each access raises what `read` does: so all bytes are of the file as it was when it was listed.
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
        """Yield a descriptor of the file, which is compared with its stamp before and after the block."""
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
    """A range of a file elsewhere; ``stamp`` is that of the file at its path, which has none of the bytes."""

    source: ByteSource

    @property
    def is_remote(self) -> bool:
        """Whether the bytes are elsewhere."""
        return True

    def read(self) -> bytes:
        """Return the bytes of the range; raise what the source raises, and `ChangedFileError` where that ends first."""
        stop = self.offset + self.size
        data = self.source.read(self.offset, stop) if self.offset < stop <= self.source.size else b""
        if len(data) < self.size:
            raise self._ended(self.source.size)
        return data

    def feed(self, take: Callable[[memoryview], object]) -> None:
        """Give the bytes of the range to ``take``, piece by piece; raise what `read` does."""
        for start in range(0, self.size, _READ_WHOLE):
            take(memoryview(self.part(start, min(start + _READ_WHOLE, self.size)).read()))
