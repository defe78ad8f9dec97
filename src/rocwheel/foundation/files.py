"""Reading ranges of files, mapped or whole."""

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

from rocwheel.foundation.errors import InputError, read_error

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileRange", "open_regular", "release_pages"]

_RELEASED_FROM = 32 << 20
_RELEASE_INTERVAL = 0.05


class FileRange(msgspec.Struct, frozen=True, order=True):
    """``size`` bytes of the file ``path`` from ``offset``: a whole file, or a member of an uncompressed archive."""

    path: str
    offset: int
    size: int

    @classmethod
    def whole(cls, path: Path) -> FileRange:
        """Return the range that covers all of ``path``; raise `InputError` when the file does not exist."""
        try:
            return cls(str(path), 0, path.stat().st_size)
        except OSError as e:
            raise read_error(str(path), e) from e

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return FileRange(self.path, self.offset + start, stop - start)

    @contextmanager
    def map(self, *, touched: int | None = None) -> Iterator[memoryview]:
        """Map the range read-only; pages are read when touched and leave with the block.

        ``touched`` is how many bytes the block will look at, if not all of them. Raises `InputError` when the file
        can't be opened or has become shorter than the range.
        """
        if self.size == 0:
            yield memoryview(b"")
            return
        start = self.offset - self.offset % mmap.ALLOCATIONGRANULARITY
        try:
            mapping = _mapped(Path(self.path), start, self.offset + self.size)
        except OSError as e:
            raise read_error(self.path, e) from e
        # Not closed by hand: the mapping ends with its last view, wherever that one is still held.
        with _releasing_pages(mapping) if _is_large(touched, self.size) else nullcontext():
            yield memoryview(mapping)[self.offset - start :]


def _mapped(path: Path, start: int, stop: int) -> mmap.mmap:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < stop:
            raise InputError(path, "shorter than when it was listed", remedy="Leave the inputs alone during a build.")
        return mmap.mmap(file.fileno(), stop - start, access=mmap.ACCESS_READ, offset=start)


def _is_large(touched: int | None, size: int) -> bool:
    return (size if touched is None else touched) >= _RELEASED_FROM


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


def release_pages(data: memoryview) -> None:
    """Release the mapped pages of ``data``, if it belongs to a mapped file, once a part of it has been scanned."""
    if isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; raise `OSError` also for a device and for a pipe, which would block."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.open("rb")
