"""Reads zstd by whatever can: Python's own module, packages that may be installed, or the system's libzstd.

libzstd's streams: https://facebook.github.io/zstd/zstd_manual.html, its chapter on streaming decompression.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module

from ..._trusted import is_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from pathlib import Path
    from typing import IO, Any

__all__ = ["open_zstd"]

MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")
"""Each has a function ``open``; of these the first that exists is used."""

LIBRARY = "libzstd.so.1"
"""Debian, Fedora, SUSE and their kin need it to install packages, so it is there nearly always."""

FOLDERS = (f"/usr/lib/{getattr(sys.implementation, '_multiarch', '')}/", "/usr/lib64/", "/usr/lib/", "")
"""Where it is; the loader searches last, as an empty entry of LD_LIBRARY_PATH leads it to the working directory."""


def open_zstd(archive: Path) -> IO[bytes] | None:
    """Open a compressed file, None when nothing here can read it. Raises `OSError` for a file that can't be opened."""
    for name in filter(is_trusted, MODULES):
        try:
            module = import_module(name)
        except ImportError:
            continue
        stream: IO[bytes] = module.open(archive, "rb")
        return stream
    library = _load_library()
    return io.BufferedReader(_Reader(library, archive), 1 << 20) if library else None


def _load_library() -> ctypes.CDLL | None:
    import ctypes  # noqa: PLC0415 (most Pythons that expand an archive have a module for it)

    library = next(filter(None, (_load(ctypes, f"{folder}{LIBRARY}") for folder in FOLDERS)), None)
    if library is None:
        return None
    try:
        for name in ("ZSTD_createDStream", "ZSTD_getErrorName", "ZSTD_decompressStream", "ZSTD_freeDStream"):
            getattr(library, name)
    except AttributeError:
        return None
    library.ZSTD_createDStream.restype = ctypes.c_void_p
    library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
    library.ZSTD_decompressStream.restype = ctypes.c_size_t
    library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    library.ZSTD_getErrorName.argtypes = [ctypes.c_size_t]
    library.ZSTD_getErrorName.restype = ctypes.c_char_p
    return library


def _load(ctypes: Any, path: str) -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    return library  # type: ignore[no-any-return]


class _Reader(io.RawIOBase):
    """The decompressed bytes of a file, by libzstd.

    Raises `ValueError` for data that is damaged, `EOFError` for data that is cut off.
    """

    def __init__(self, library: ctypes.CDLL, archive: Path) -> None:
        import ctypes  # noqa: PLC0415

        class Buffer(ctypes.Structure):
            """``ZSTD_inBuffer`` and ``ZSTD_outBuffer``, which are alike."""

            _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t))

        self._ctypes = ctypes
        self._library = library
        self._file = archive.open("rb")
        self._block = b""
        self._input: Any = Buffer()
        self._output: Any = Buffer()
        self._is_inside_frame = False
        self._stream = ctypes.c_void_p(library.ZSTD_createDStream())

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, at least in part, and return how many bytes; 0 at the end."""
        view = memoryview(buffer).cast("B")
        place = (self._ctypes.c_char * len(view)).from_buffer(view)
        self._output.data, self._output.size, self._output.position = self._ctypes.addressof(place), len(view), 0
        while not self._output.position:
            if self._input.position == self._input.size and not self._fill() and not self._is_inside_frame:
                return 0
            before = self._input.position
            self._decompress()
            if not self._output.position and self._is_inside_frame and self._input.position == before and self._at_end:
                msg = "the compressed data ends too early"
                raise EOFError(msg)
        return int(self._output.position)

    def close(self) -> None:
        """Close the file and free what libzstd has allocated."""
        if not self.closed:
            self._file.close()
            self._library.ZSTD_freeDStream(self._stream)
        super().close()

    def _fill(self) -> bool:
        self._block = self._file.read(1 << 17)
        place = self._ctypes.cast(self._ctypes.c_char_p(self._block), self._ctypes.c_void_p)
        self._input.data, self._input.size, self._input.position = place, len(self._block), 0
        return bool(self._block)

    @property
    def _at_end(self) -> bool:
        return not self._block

    def _decompress(self) -> None:
        by = self._ctypes.byref
        left = self._library.ZSTD_decompressStream(self._stream, by(self._output), by(self._input))
        if self._library.ZSTD_isError(left):
            raise ValueError(self._library.ZSTD_getErrorName(left).decode())
        self._is_inside_frame = left != 0
