"""One small file of a source distribution: a gzipped tar, which may come from anybody."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from typing import IO, TYPE_CHECKING, cast

from rocwheel.distributions.tar.stream import TAR_ERRORS, open_tar_stream, tar_members
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.distributions.tar.header import BoundedTar

__all__ = ["read_sdist_file"]

_LIMIT = 16 << 20
_MOST_UNPACKED = 8 << 30
_ERRORS = (*TAR_ERRORS, gzip.BadGzipFile, zlib.error)


def read_sdist_file(path: Path, name: str, *, to_end: bool = False) -> bytes | None:
    """Return the content of the first file ``TOP/name`` of an sdist, whose one top folder is ``TOP``; none without it.

    With ``to_end``, everything is read, and its checksum compared. Raises `InputError` for what is damaged or beyond
    bounds, and `OSError` when the file can't be read.
    """
    try:
        with open_regular(path) as file, open_tar_stream(_unpacked(file)) as tar:
            return _find(path, tar, name, to_end=to_end)
    except _ERRORS as e:
        raise InputError(path, f"not a readable .tar.gz archive ({e})", remedy="Build or fetch it again.") from e


def _find(path: Path, tar: BoundedTar, name: str, *, to_end: bool) -> bytes | None:
    found: bytes | None = None
    for info in tar_members(tar):
        if found is None and info.isfile() and info.name.partition("/")[2] == name:
            if info.size > _LIMIT:
                raise InputError(path, f"{info.name} is {info.size} bytes long", expected="at most 16 MiB")
            content = tar.extractfile(info)
            found = content.read() if content else b""
        if found is not None and not to_end:
            break
    return found


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", _Bounded(cast("IO[bytes]", gzip.open(file))))


class _Bounded:
    """A stream that may not be longer than `_MOST_UNPACKED`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = _MOST_UNPACKED

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            msg = f"it has more than {_MOST_UNPACKED} bytes when unpacked"
            raise tarfile.ReadError(msg)
        return data
