"""Reading all of a tar (pax, GNU or ustar) forward: the standard library mistakes a damaged header for the end."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_EXTENSION", "open_tar_stream", "tar_members"]

MAX_EXTENSION = 1 << 20
"""Bytes of a long name or of pax records, which are read into memory; Linux takes paths of 4096 bytes."""

_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENSIONS = (*_PAX, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_CHUNK = 1 << 16


class _Header(tarfile.TarInfo):
    """A header that is well-formed, or the first of the zero blocks that end a tar."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Header:
        """Read the next header. Raises `tarfile.ReadError` where the reader would assume the end of the tar."""
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

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Read what belongs to the header; the standard library has this hook for subclasses."""
        if self.type in _EXTENSIONS and self.size > MAX_EXTENSION:
            msg = f"a name or its like has {self.size} bytes"
            raise tarfile.ReadError(msg)
        info: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return info


@contextmanager
def open_tar_stream(stream: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """Open a tar for one pass. Raises `tarfile.ReadError` when it doesn't begin as one."""
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
        yield tar


def tar_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Read the members of an open stream in their order.

    Raises `tarfile.ReadError`, and what reading raises, for a damaged header and when anything follows the end.
    """
    yield from tar
    rest = tar.fileobj
    while rest and (data := rest.read(_CHUNK)):
        if any(data):
            msg = "a block of zeros is between its members"
            raise tarfile.ReadError(msg)
