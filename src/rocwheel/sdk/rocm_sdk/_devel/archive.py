"""Reads the archive of development files: a tar, plain or compressed by xz or zstd."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from importlib import import_module

from .place import DevelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["archive_members", "open_archive"]

DECOMPRESSORS = {
    ".xz": (("lzma",), "a Python with the module lzma"),
    ".zst": (("compression.zstd", "backports.zstd"), "Python 3.14, or: pip install backports.zstd"),
}
"""Suffix -> modules that can open it, of which the first that exists is used; what is needed when none exists."""


class _Header(tarfile.TarInfo):
    """A well-formed header, or the first of the zero blocks that end a tar.

    `tarfile` takes a damaged header for the end, and would silently leave out what comes after it.
    """

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Header:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.EmptyHeaderError as e:  # type: ignore[attr-defined]
            msg = "it has no end"
            raise tarfile.ReadError(msg) from e
        except tarfile.HeaderError as e:
            msg = f"a header is damaged: {e}"
            raise tarfile.ReadError(msg) from e


@contextmanager
def open_archive(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive for one pass over its members. Raises `DevelError` when this Python can't decompress it."""
    with _open_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
        yield tar


def archive_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an open archive, reading every byte to its end.

    Raises `tarfile.ReadError`, or whatever the decompressor raises, when it is damaged or cut off.
    """
    yield from tar
    while tar.fileobj and (rest := tar.fileobj.read(1 << 16)):
        if any(rest):
            msg = "a block of zeros stands between its members"
            raise tarfile.ReadError(msg)


def _open_stream(archive: Path) -> IO[bytes]:
    if archive.suffix not in DECOMPRESSORS:
        return archive.open("rb")
    names, needed = DECOMPRESSORS[archive.suffix]
    for name in names:
        try:
            module = import_module(name)
        except ImportError:
            continue
        stream: IO[bytes] = module.open(archive, "rb")
        return stream
    msg = f"{archive}: reading it needs {needed}"
    raise DevelError(msg)
