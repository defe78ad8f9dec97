"""Reading ranges of files that others may write meanwhile: what was read is what was listed, or an error says so.

Files that somebody else can write are read by pread(2) alone. A map of such a file would be fatal: where it is
truncated, or its file system is full, touching a page of the map ends the process (SIGBUS).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.files.reading.file_stamp import ChangedFileError, FileStamp
from rocwheel.foundation.files.reading.file_view import FileView
from rocwheel.foundation.files.reading.mapped_range import mapped_range
from rocwheel.foundation.files.reading.stand_ins import source_at
from rocwheel.foundation.files.temporary_file import range_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.foundation.files.reading.file_view import Data
    from rocwheel.foundation.files.reading.stand_ins import ByteSource

__all__ = ["FileRange"]

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
        """Return the range that covers all of ``path``; raise `InputError` when the file does not exist."""
        stamp = FileStamp.at(path)
        return cls(str(path), 0, stamp.size, stamp)

    def part(self, start: int, stop: int) -> FileRange:
        """Return the range from ``start`` to ``stop``, both counted from the beginning of this one."""
        return FileRange(self.path, self.offset + start, stop - start, self.stamp)

    def for_any_machine(self) -> FileRange:
        """Return the range as machines that share the file can read it."""
        return FileRange(self.path, self.offset, self.size, self.stamp and self.stamp.for_any_machine())

    def read(self) -> bytes:
        """Return the bytes of the range.

        Raises `ChangedFileError` when the file is not the one that was listed, before or after the reading, and
        `InputError` when it can't be read.
        """
        if self.size == 0:
            return b""
        if source := source_at(self.path):
            return self._read_from(source)
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
        if source_at(self.path) or self.size <= _PIECE:
            for start in range(0, self.size, _READ_WHOLE):
                take(memoryview(self.part(start, min(start + _READ_WHOLE, self.size)).read()))
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

    def _read_from(self, source: ByteSource) -> bytes:
        stop = self.offset + self.size
        data = source.read(self.offset, stop) if stop <= source.size else b""
        if len(data) < self.size:
            raise self._ended(source.size)
        return data

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
