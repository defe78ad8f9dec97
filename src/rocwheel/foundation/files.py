"""Reading ranges of files that others may write meanwhile: what was read is what was listed, or an error says so.

Files that somebody else can write are read by pread(2) alone. A map of such a file would be fatal: where it is
truncated, or its file system is full, touching a page of the map ends the process (SIGBUS).
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.foundation.errors import read_error
from rocwheel.foundation.file_stamp import ChangedFileError, FileStamp
from rocwheel.foundation.file_view import FileView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.foundation.file_view import Data

__all__ = ["FileRange", "open_regular", "open_unchanged", "read_regular", "release_pages", "unchanged"]

_READ_WHOLE = 1 << 20
"""Ranges up to this size are read at once by `FileRange.view`."""
_READ_MOST = 1 << 30
"""What one call reads at most; Linux ends a read just below 2 GiB."""
_RELEASED_FROM = 32 << 20
_RELEASE_INTERVAL = 0.05


class FileRange(msgspec.Struct, frozen=True, order=True):
    """``size`` bytes of the file ``path`` from ``offset``: a whole file, or a member of an uncompressed archive."""

    path: str
    offset: int
    size: int
    stamp: FileStamp | None = None
    """What the file was like when it was listed; none for a nameless file, which nobody else can write."""

    @classmethod
    def whole(cls, path: Path) -> FileRange:
        """Return the range that covers all of ``path``; raise `InputError` when the file does not exist."""
        stamp = FileStamp.at(path)
        return cls(str(path), 0, stamp.size, stamp)

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return FileRange(self.path, self.offset + start, stop - start, self.stamp)

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
                    raise ChangedFileError(self.path, f"ends at byte {position} of {stop} that it was to have")
                position += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @contextmanager
    def view(self) -> Iterator[Data]:
        """Yield the range for those who look at parts of it; bytes are read when they are asked for.

        Each time it raises what `read` does, so that all bytes are of one state of the file, that of its listing.
        """
        if self.stamp is None:
            with _mapped(self) as data:
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
            raise read_error(self.path, e) from e

    def _require(self, descriptor: int) -> None:
        if self.stamp is not None:
            self.stamp.require(os.fstat(descriptor), self.path)


@contextmanager
def _mapped(source: FileRange) -> Iterator[memoryview]:
    """Map a range of a file that nobody else can write; pages are read when touched and leave with the block."""
    if source.size == 0:
        yield memoryview(b"")
        return
    start = source.offset - source.offset % mmap.ALLOCATIONGRANULARITY
    try:
        with Path(source.path).open("rb") as file:
            size = source.offset + source.size - start
            mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, offset=start)
    except (OSError, ValueError) as e:
        error = e if isinstance(e, OSError) else OSError(errno.EINVAL, str(e))
        raise read_error(source.path, error) from e
    # Not closed by hand: the mapping ends with its last view, wherever that one is still held.
    with _releasing_pages(mapping) if source.size >= _RELEASED_FROM else nullcontext():
        yield memoryview(mapping)[source.offset - start :]


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


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; raise `OSError` also for a device and for a pipe, which would block."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """Return all of a small file that the user named, such as settings; raises as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


@contextmanager
def open_unchanged(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read in one go, as `open_regular` does.

    Raises `ChangedFileError` at the end of the block, whatever it ends with, when the file has changed meanwhile.
    """
    with open_regular(path) as file, _requiring(path, lambda: os.fstat(file.fileno())):
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
