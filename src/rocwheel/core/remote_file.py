"""Files elsewhere, such as at URLs: their bytes are had by range, and a path leads to them as if they were here."""

from __future__ import annotations

import io
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class ByteSource(Protocol):
    """Bytes that are had by range."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two places inside the size."""

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take note that these ranges will be read soon."""


class RemotePath(PosixPath):
    """The path of a file that has the name and the size of one elsewhere, and none of its bytes.

    `rocwheel.core.reading` takes these from the source. A path that is made from its text leads to the file itself.
    """

    source: ByteSource | None = None
    """None for what is made from such a path, such as its parent."""


def make_remote(path: Path, source: ByteSource) -> RemotePath:
    """Make the file at ``path``, and return the path by which ``source`` is read."""
    with path.open("wb") as file:
        file.truncate(source.size)
    made = RemotePath(path)
    made.source = source
    return made


def source_of(path: Path) -> ByteSource | None:
    """Return what has the bytes of a file that is elsewhere; none for other paths."""
    return path.source if isinstance(path, RemotePath) else None


class SourceFile(io.RawIOBase):
    """A source as a file that is open for reading; its descriptor is that of the file at its path."""

    def __init__(self, path: Path, source: ByteSource) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._source = source
        self._position = 0

    def fileno(self) -> int:
        """Return the descriptor of the file that has no bytes."""
        return self._file.fileno()

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that any place can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        if start + offset < 0:
            msg = "a place before the beginning"
            raise OSError(msg)
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        """Read into a buffer, and return how many bytes that were."""
        stop = min(self._position + len(buffer), self._source.size)
        data = self._source.read(self._position, stop) if stop > self._position else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file that has no bytes."""
        self._file.close()
        super().close()
