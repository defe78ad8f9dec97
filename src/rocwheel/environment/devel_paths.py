"""Reads the paths of development files in an archive inside a package. ``rocm_sdk`` unpacks the archive when needed.

The archive is a tar file, either uncompressed or compressed with xz or zstd. On Windows, a manifest next to the archive
replaces links: it lists the files of the tree that other packages provide.
"""

from __future__ import annotations

import io
import lzma
import posixpath
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from rocwheel.core.compression import BOUND, CAUTION, BoundedStream, ExpansionError, most_unpacked, open_xz, zstd
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError
from rocwheel.wheels.tar import TAR_ERRORS, open_tar_stream, tar_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_OPENERS = cast(
    "dict[str, Callable[[IO[bytes]], IO[bytes]]]",
    {"_devel.tar": lambda stream: stream, "_devel.tar.xz": open_xz, "_devel.tar.zst": zstd.ZstdFile},
)
_MANIFEST = "_links.json"
_DAMAGE = (*TAR_ERRORS, lzma.LZMAError, zstd.ZstdError)
_AGAIN = "Build or download it again."


def is_devel_archive(path: str) -> bool:
    """Return whether a file is an archive with development files, judging by its name."""
    return posixpath.basename(path) in _OPENERS


def is_devel_manifest(path: str) -> bool:
    """Return whether a file is the manifest of such an archive, judging by its name."""
    return posixpath.basename(path) == _MANIFEST


def read_archive_paths(name: str, pieces: Iterable[bytes | memoryview], size: int) -> tuple[str, ...]:
    """Return the paths of an archive's files and links, relative to site-packages, in the archive's order.

    ``pieces`` are the bytes of the archive. At most one piece is in memory at a time. ``size`` is the stored size,
    which is the compressed size for a member of a wheel. Raises `InputError` for a damaged archive, and for an archive
    with far more contents than libraries have.
    """
    stream = io.BufferedReader(_Pieces(iter(pieces)), 1 << 16)
    opened = _OPENERS[posixpath.basename(name)](cast("IO[bytes]", stream))
    bounded = cast("IO[bytes]", BoundedStream(opened, most_unpacked(size)))
    try:
        with open_tar_stream(bounded) as tar:
            return tuple(posixpath.normpath(info.name) for info in tar_members(tar) if not info.isdir())
    except ExpansionError as e:
        raise InputError(name, str(e), expected=BOUND, remedy=CAUTION) from e
    except _DAMAGE as e:
        raise InputError(name, f"is damaged or truncated ({e})", expected="a tar file", remedy=_AGAIN) from e


class _Manifest(msgspec.Struct):
    links: dict[str, Any]


def read_manifest_paths(name: str, data: bytes) -> tuple[str, ...]:
    """Return the paths in a manifest, relative to the tree. Raises `InputError` for a damaged manifest."""
    try:
        return tuple(decode_json(data, _Manifest).links)
    except msgspec.DecodeError as e:
        raise InputError(name, f"is damaged ({e})", expected="an object with 'links'", remedy=_AGAIN) from e


class _Pieces(io.RawIOBase):
    """A file-like object for pieces of bytes. It can only be read forward."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return ``True``, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer with the next bytes. Return 0 at the end."""
        view = memoryview(cast("bytearray", buffer))
        while not self._rest:
            if (piece := next(self._pieces, None)) is None:
                return 0
            self._rest = memoryview(piece)
        taken = min(len(view), len(self._rest))
        view[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken
