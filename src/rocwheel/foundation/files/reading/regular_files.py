"""Opening and reading files that must be regular, and that nobody may change while they are read."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from rocwheel.foundation.errors import InputError, is_fault, read_error
from rocwheel.foundation.files.reading.file_stamp import FileStamp
from rocwheel.foundation.files.reading.stand_ins import SourceFile, source_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = [
    "open_regular",
    "open_unchanged",
    "read_at",
    "read_if_readable",
    "read_regular",
    "read_small",
    "unchanged",
]

_LARGEST = 64 << 20
"""Bytes of a file that is read at once."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; raise `OSError` also for a device and for a pipe, which would block."""
    if source := source_at(str(path)):
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
