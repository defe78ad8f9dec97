"""Maps of nameless files, which nobody else can cut short, without their pages staying in memory."""

from __future__ import annotations

import errno
import mmap
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.foundation.files.temporary_file import range_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.foundation.files.reading.file_view import Data

__all__ = ["mapped_range", "release_pages"]

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
