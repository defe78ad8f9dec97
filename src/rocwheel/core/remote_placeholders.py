"""Empty local files that stand for files at URLs: reading them by range gets the bytes from there.

`rocwheel.core.reading` and `regular_files` ask here; the file itself has only the name and the
size. So code that reads a wheel by its path can read one at a URL, and reads no more of it than it needs.
"""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


class ByteSource(Protocol):
    """Bytes that are had by range."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two places inside the size."""

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take note that these ranges will be read soon."""


_sources: dict[str, ByteSource] = {}
"""By the path of the file that stands for one."""
_openers: dict[str, Callable[[str], ByteSource]] = {}
"""By the beginning of paths."""
_names: dict[str, str] = {}
"""What is shown in place of a path."""


@contextmanager
def registered(path: Path, source: ByteSource | None, name: str) -> Iterator[None]:
    """Have the file at ``path`` stand for ``source`` while the block lasts, and be shown as ``name``.

    The file is made if there is a source. It is absolute, without links on its way.
    """
    _names[str(path)] = name
    if source is not None:
        with path.open("wb") as file:
            file.truncate(source.size)
        _sources[str(path)] = source
    try:
        yield
    finally:
        del _names[str(path)]
        _sources.pop(str(path), None)


def stand_below(start: str, open_source: Callable[[str], ByteSource]) -> None:
    """Have every path with this beginning stand for what ``open_source`` returns for it, until the process ends.

    There is no file: such paths are for `rocwheel.core.reading` alone.
    """
    _openers[start] = open_source


def show_as(folder: Path, name: str) -> None:
    """Have a folder of files that were brought from elsewhere shown as ``name``, as long as the process lasts."""
    _names[str(folder)] = name


def source_at(path: str) -> ByteSource | None:
    """Return what the file at a path stands for; none for a file that has its bytes itself."""
    if source := _sources.get(path):
        return source
    return next((open_source(path) for start, open_source in [*_openers.items()] if path.startswith(start)), None)


def prefetch(path: str, ranges: Iterable[tuple[int, int]]) -> None:
    """Say that ranges of a file will be read soon, which only matters for one that stands for another."""
    if source := source_at(path):
        source.prefetch(ranges)


def shown(text: str) -> str:
    """Return a text with the names of what is elsewhere in place of the paths of the files that stand for it."""
    for path, name in _names.items():
        text = text.replace(path, name)
    return text


def place_of(file: str) -> str:
    """Return the URL that a file of this name stands for; the name itself if it stands for none, or is a whole path."""
    if os.path.isabs(file):  # noqa: PTH117
        return file
    for path, name in _names.items():
        if os.path.basename(path) == file:  # noqa: PTH119  # asked for each finding
            return name
        if os.path.isfile(os.path.join(path, file)):  # noqa: PTH113, PTH118
            return f"{name}/{quote(file)}"
    return file


class SourceFile(io.RawIOBase):
    """A source as a file that is open for reading; its descriptor is that of the file that stands for it."""

    def __init__(self, path: Path, source: ByteSource) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._source = source
        self._position = 0

    def fileno(self) -> int:
        """Return the descriptor of the empty file."""
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
        """Close the empty file."""
        self._file.close()
        super().close()
