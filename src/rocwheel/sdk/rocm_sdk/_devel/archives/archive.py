"""Reads the archive of development files: a tar, plain or compressed by xz or zstd."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager

from ..._platform import this_platform
from ..place import DevelError
from .xz import open_xz
from .zstd import open_zstd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["archive_members", "open_archive"]

MOST_RECORDS = 64 << 10
"""Bytes of the header that holds a long name or a large size; a path has at most 4096."""

_BUFFER = 128 << 10
"""Bytes that `tarfile` asks for at a time. More take longer again, as it copies what it has left at each small read."""

NEVER_WRITTEN = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE),
    *(tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
"""Kinds of headers that `rocwheel build` has no need for, and that `tarfile` reads into memory whatever their size."""


class _Header(tarfile.TarInfo):
    """A well-formed header, or the first of the zero blocks that end a tar.

    `tarfile` takes a damaged header for the end, and would silently leave out what comes after it. It reads what
    extends a header into memory, however large that is.
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

    # The methods that follow are hooks of `tarfile` for subclasses.

    def _proc_member(self, archive: tarfile.TarFile) -> _Header:
        if self.size < 0:
            msg = f"{self.name!r} has a negative size"
            raise tarfile.ReadError(msg)
        if self.type in NEVER_WRITTEN or (self.type == tarfile.XHDTYPE and self.size > MOST_RECORDS):
            msg = f"{self.name!r} is a header of a kind or size that no archive of development files has"
            raise tarfile.ReadError(msg)
        info: _Header = super()._proc_member(archive)  # type: ignore[misc]
        return info

    def _refuse_sparse(self, *_: object) -> None:
        msg = f"{self.name!r} is stored without its holes"
        raise tarfile.ReadError(msg)

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


@contextmanager
def open_archive(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive for one pass over its members. Raises `DevelError` when this Python can't decompress it."""
    options = {"tarinfo": _Header, "bufsize": _BUFFER}
    with _open_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|", **options) as tar:  # type: ignore[call-overload]
        yield tar


def archive_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an open archive, reading every byte to its end.

    Raises `tarfile.ReadError`, or whatever the decompressor raises, when it is damaged or cut off.
    """
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]
        yield member
    while tar.fileobj and (rest := tar.fileobj.read(1 << 16)):
        if any(rest):
            msg = "a block of zeros stands between its members"
            raise tarfile.ReadError(msg)


def _open_stream(archive: Path) -> IO[bytes]:
    stream: IO[bytes] | None
    if archive.suffix == ".xz":
        stream, needed = open_xz(archive), "a Python with the module lzma"
    elif archive.suffix == ".zst":
        library = "" if this_platform().is_windows else "libzstd.so.1 or "
        stream, needed = open_zstd(archive), f"{library}Python 3.14, or: pip install backports.zstd"
    else:
        return archive.open("rb")
    if stream is None:
        msg = f"{archive}: reading it needs {needed}"
        raise DevelError(msg)
    return stream
