"""Streams of xz, read with a bound on memory: the standard library's file object takes what the stream asks for."""

from __future__ import annotations

import io
import lzma
from typing import IO, cast

__all__ = ["XZ_MEMORY", "open_xz"]

XZ_MEMORY = 128 << 20
"""Bytes that one decoder may take; that is twice what ``xz -9`` asks for. A stream can ask for 4 GiB."""

_CHUNK = 1 << 16


def open_xz(file: IO[bytes]) -> IO[bytes]:
    """Return the decompressed content of ``file``, one or more streams of xz, as a file to read forward.

    Reading raises `EOFError` where the content ends early, and `lzma.LZMAError` for other damage and for a stream that
    takes more than `XZ_MEMORY`.
    """
    return cast("IO[bytes]", io.BufferedReader(_XzStream(file), _CHUNK))


class _XzStream(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._decoder: lzma.LZMADecompressor | None = _new_decoder()
        self._waiting = b""

    def readable(self) -> bool:
        """Return that it can be read, as `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer with what comes next; 0 is the end."""
        view = memoryview(cast("bytearray", buffer))
        data = b""
        while not data and self._decoder is not None:
            data = self._decode(self._decoder, len(view))
        view[: len(data)] = data
        return len(data)

    def _decode(self, decoder: lzma.LZMADecompressor, size: int) -> bytes:
        if decoder.needs_input and not self._waiting:
            self._waiting = self._file.read(_CHUNK)
            if not self._waiting:
                msg = "it ends before the end of its stream"
                raise EOFError(msg)
        data = decoder.decompress(self._waiting, size)
        self._waiting = b""
        if decoder.eof:
            self._next_stream(decoder.unused_data)
        return data

    def _next_stream(self, rest: bytes) -> None:
        # Streams may be padded with zeros, in fours (xz file format 1.2, section 2.2).
        while rest := (rest or self._file.read(_CHUNK)):
            if rest := rest.lstrip(b"\0"):
                break
        self._waiting = rest
        self._decoder = _new_decoder() if rest else None


def _new_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY)
