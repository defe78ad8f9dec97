"""Reads xz with a bound on memory, which `lzma.LZMAFile` has not: a stream can ask for 4 GiB."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO, Any

__all__ = ["open_xz"]

MEMORY = 128 << 20
"""Bytes that a decoder may take: twice what ``xz -9`` asks for."""

CHUNK = 1 << 16


def open_xz(archive: Path) -> IO[bytes] | None:
    """Open a compressed file, None when this Python was built without lzma. Raises `OSError` if it can't be opened."""
    try:
        import lzma  # noqa: PLC0415
    except ImportError:
        return None
    return io.BufferedReader(_Reader(lzma, archive), CHUNK)


class _Reader(io.RawIOBase):
    """The content of one or more streams.

    Raises `EOFError` for data that is cut off, `lzma.LZMAError` for other damage and for what takes more than `MEMORY`.
    """

    def __init__(self, lzma: Any, archive: Path) -> None:
        self._lzma = lzma
        self._file = archive.open("rb")
        self._waiting = b""
        self._decoder = self._make_decoder()

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, at least in part, and return how many bytes; 0 at the end."""
        data = b""
        while not data and not (self._decoder.eof and not self._begin_next()):
            if self._decoder.needs_input and not self._waiting:
                self._waiting = self._file.read(CHUNK)
                if not self._waiting:
                    msg = "the compressed data ends too early"
                    raise EOFError(msg)
            data = self._decoder.decompress(self._waiting, len(buffer))
            self._waiting = b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _begin_next(self) -> bool:
        """Begin with the stream that follows the one that has ended; between two there may be zeros."""
        self._waiting = self._decoder.unused_data.lstrip(b"\0")
        while not self._waiting:
            chunk = self._file.read(CHUNK)
            if not chunk:
                return False
            self._waiting = chunk.lstrip(b"\0")
        self._decoder = self._make_decoder()
        return True

    def _make_decoder(self) -> Any:
        return self._lzma.LZMADecompressor(memlimit=MEMORY)
