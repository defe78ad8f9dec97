"""Reads the archive of development files: a tar file, uncompressed or compressed with xz or zstd."""

from __future__ import annotations

import io
import sys
import tarfile
from contextlib import contextmanager
from importlib import import_module

from ._devel_place import DevelError
from ._packages import is_trusted
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO, Any

MOST_RECORDS = 64 << 10
"""The maximum size in bytes of a header with a long name or a large size. A path is at most 4096 bytes long."""

_BUFFER = 128 << 10
"""The number of bytes that `tarfile` reads at a time.

Larger blocks are slower, because each small read copies the rest of the block.
"""

NEVER_WRITTEN = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE),
    *(tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
"""Header types that `rocwheel build` doesn't use.

`tarfile` would read such headers into memory without a size limit.
"""


@contextmanager
def open_archive(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive for a single pass over its members.

    Raises `DevelError` if this Python installation can't decompress it.
    """
    options = {"tarinfo": _Header, "bufsize": _BUFFER}
    with _open_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|", **options) as tar:  # type: ignore[call-overload]
        yield tar


def _open_stream(archive: Path) -> IO[bytes]:
    stream: IO[bytes] | None
    if archive.suffix == ".xz":
        stream, needed = open_xz(archive), "a Python with the lzma module"
    elif archive.suffix == ".zst":
        library = "" if this_platform().is_windows else "libzstd.so.1 or "
        stream, needed = open_zstd(archive), f"{library}Python 3.14, or: pip install backports.zstd"
    else:
        return archive.open("rb")
    if stream is None:
        msg = f"{archive}: reading this archive requires {needed}"
        raise DevelError(msg)
    return stream


def archive_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an open archive, and read the archive up to its last byte.

    Raises `tarfile.ReadError`, or an error of the decompressor, if the archive is damaged or truncated.
    """
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]
        yield member
    while tar.fileobj and (rest := tar.fileobj.read(1 << 16)):
        if any(rest):
            msg = "there is a block of zeros between its members"
            raise tarfile.ReadError(msg)


class _Header(tarfile.TarInfo):
    """A well-formed header, or the first of the zero blocks that end a tar file.

    `tarfile` treats a damaged header as the end of the file, and silently skips the members after it. It reads extended
    headers of any size into memory.
    """

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Header:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.EmptyHeaderError as e:  # type: ignore[attr-defined]
            msg = "its end is missing"
            raise tarfile.ReadError(msg) from e
        except tarfile.HeaderError as e:
            msg = f"a header is damaged: {e}"
            raise tarfile.ReadError(msg) from e

    # The following methods are hooks that `tarfile` provides for subclasses.

    def _proc_member(self, archive: tarfile.TarFile) -> _Header:
        if self.size < 0:
            msg = f"{self.name!r} has a negative size"
            raise tarfile.ReadError(msg)
        if self.type in NEVER_WRITTEN or (self.type == tarfile.XHDTYPE and self.size > MOST_RECORDS):
            msg = f"{self.name!r} is a header of an unexpected kind or size"
            raise tarfile.ReadError(msg)
        info: _Header = super()._proc_member(archive)  # type: ignore[misc]
        return info

    def _refuse_sparse(self, *_: object) -> None:
        msg = f"{self.name!r} is a sparse file"
        raise tarfile.ReadError(msg)

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


MEMORY = 128 << 20
"""The maximum memory for a decoder, in bytes: twice the memory that ``xz -9`` needs."""

CHUNK = 1 << 16


def open_xz(archive: Path) -> IO[bytes] | None:
    """Open a file with a memory limit, which `lzma.LZMAFile` doesn't have. A stream can request 4 GiB.

    Return `None` if this Python has no `lzma` module. Raises `OSError` if the file can't be opened.
    """
    try:
        import lzma  # noqa: PLC0415
    except ImportError:
        return None
    return io.BufferedReader(_XzReader(lzma, archive), CHUNK)


class _XzReader(io.RawIOBase):
    """Reads the decompressed content of one or more streams.

    Raises `EOFError` for truncated data. Raises `lzma.LZMAError` for other damage, and for streams that need more than
    `MEMORY`.
    """

    def __init__(self, lzma: Any, archive: Path) -> None:
        self._lzma = lzma
        self._file = archive.open("rb")
        self._waiting = b""
        self._decoder = self._make_decoder()

    def readable(self) -> bool:
        """Return `True`, because the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill at least part of a buffer, and return the number of bytes, or 0 at the end."""
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
        """Start the next stream. There may be zeros between two streams."""
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


MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")
"""Modules with an ``open`` function. The first module that exists is used."""

LIBRARY = "libzstd.so.1"
"""The name of libzstd.

The package managers of Debian, Fedora, SUSE, and related systems need it, so most systems have it.
"""

FOLDERS = (f"/usr/lib/{getattr(sys.implementation, '_multiarch', '')}/", "/usr/lib64/", "/usr/lib/", "")
"""Folders of libzstd.

The loader's search comes last, because an empty entry in LD_LIBRARY_PATH represents the working directory.
"""


def open_zstd(archive: Path) -> IO[bytes] | None:
    """Open a file with Python's own module, an installed package, or the system's libzstd.

    Return `None` if no decompressor is available. Raises `OSError` if the file can't be opened.
    """
    for name in filter(is_trusted, MODULES):
        try:
            module = import_module(name)
        except ImportError:
            continue
        stream: IO[bytes] = module.open(archive, "rb")
        return stream
    library = _load_library()
    return io.BufferedReader(_ZstdReader(library, archive), 1 << 20) if library else None


def _load_library() -> ctypes.CDLL | None:
    import ctypes  # noqa: PLC0415 (most Pythons that expand an archive have a module for it)

    library = next(filter(None, (_open_library(ctypes, f"{folder}{LIBRARY}") for folder in FOLDERS)), None)
    functions = ("ZSTD_createDStream", "ZSTD_getErrorName", "ZSTD_decompressStream", "ZSTD_freeDStream")
    if library is None or not all(hasattr(library, name) for name in functions):
        return None
    library.ZSTD_createDStream.restype = ctypes.c_void_p
    library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
    library.ZSTD_decompressStream.restype = ctypes.c_size_t
    library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    library.ZSTD_getErrorName.argtypes = [ctypes.c_size_t]
    library.ZSTD_getErrorName.restype = ctypes.c_char_p
    return library


def _open_library(ctypes: Any, path: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path)  # type: ignore[no-any-return]
    except OSError:
        return None


class _ZstdReader(io.RawIOBase):
    """Reads a file that libzstd decompresses (https://facebook.github.io/zstd/zstd_manual.html, "Streaming").

    Raises `ValueError` for damaged data, and `EOFError` for truncated data.
    """

    def __init__(self, library: ctypes.CDLL, archive: Path) -> None:
        import ctypes  # noqa: PLC0415

        class Buffer(ctypes.Structure):
            """``ZSTD_inBuffer`` and ``ZSTD_outBuffer``, which have the same layout."""

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
        """Return `True`, because the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill at least part of a buffer, and return the number of bytes, or 0 at the end."""
        view = memoryview(buffer).cast("B")
        place = (self._ctypes.c_char * len(view)).from_buffer(view)
        self._output.data, self._output.size, self._output.position = self._ctypes.addressof(place), len(view), 0
        while not self._output.position:
            if self._input.position == self._input.size and not self._fill() and not self._is_inside_frame:
                return 0
            before = self._input.position
            by = self._ctypes.byref
            left = self._library.ZSTD_decompressStream(self._stream, by(self._output), by(self._input))
            if self._library.ZSTD_isError(left):
                raise ValueError(self._library.ZSTD_getErrorName(left).decode())
            self._is_inside_frame = left != 0
            is_idle = not self._output.position and self._input.position == before
            if is_idle and self._is_inside_frame and not self._block:
                msg = "the compressed data ends too early"
                raise EOFError(msg)
        return int(self._output.position)

    def close(self) -> None:
        """Close the file and free the memory that libzstd allocated."""
        if not self.closed:
            self._file.close()
            self._library.ZSTD_freeDStream(self._stream)
        super().close()

    def _fill(self) -> bool:
        self._block = self._file.read(1 << 17)
        place = self._ctypes.cast(self._ctypes.c_char_p(self._block), self._ctypes.c_void_p)
        self._input.data, self._input.size, self._input.position = place, len(self._block), 0
        return bool(self._block)
