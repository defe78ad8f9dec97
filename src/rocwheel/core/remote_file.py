"""Reads remote files, such as files at URLs.

Byte ranges are fetched on demand, and a local path represents each file.
"""

from __future__ import annotations

import io
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class ByteSource(Protocol):
    """Bytes that can be read by range."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two offsets."""

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce that these ranges will be read soon."""


class RemotePath(PosixPath):
    """The path of a placeholder with the name and size of a remote file, but without its bytes.

    `rocwheel.core.reading` reads the bytes from the source. A path that is created from this path's text refers to the
    placeholder itself.
    """

    source: ByteSource | None = None
    """The source, or `None` for a path derived from this one, such as its parent."""


def make_remote(path: Path, source: ByteSource) -> RemotePath:
    """Create the placeholder at ``path``, and return a path whose bytes come from ``source``."""
    with path.open("wb") as file:
        file.truncate(source.size)
    made = RemotePath(path)
    made.source = source
    return made


def source_of(path: Path) -> ByteSource | None:
    """Return the source of a remote file, or `None` for other paths."""
    return path.source if isinstance(path, RemotePath) else None


class SourceFile(io.RawIOBase):
    """A source in the form of a file object that is open for reading.

    Its descriptor is the placeholder's descriptor.
    """

    def __init__(self, path: Path, source: ByteSource) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._source = source
        self._position = 0

    def fileno(self) -> int:
        """Return the descriptor of the placeholder."""
        return self._file.fileno()

    def readable(self) -> bool:
        """Return `True`, because the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return `True`, because any position can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        if start + offset < 0:
            msg = "an offset before the start of the file"
            raise OSError(msg)
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        """Read into a buffer, and return the number of bytes."""
        stop = min(self._position + len(buffer), self._source.size)
        data = self._source.read(self._position, stop) if stop > self._position else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close the placeholder."""
        self._file.close()
        super().close()
