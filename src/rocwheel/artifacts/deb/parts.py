"""The two tars inside a Debian package: an ar archive's members, decompressed as streams that name what is damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

import msgspec

from rocwheel.binary.bundles.ar_archive import AR_HEADER_SIZE, parse_ar_header
from rocwheel.binary.kind import AR_MAGIC
from rocwheel.core.compression import BOUND, CAUTION, BoundedStream, ExpansionError, most_unpacked, open_xz, zstd
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.distributions.tar.header import SparseMemberError
from rocwheel.distributions.tar.stream import TAR_ERRORS, open_tar_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.progress import Progress
    from rocwheel.distributions.tar.header import BoundedTar

__all__ = ["DebError", "DebPart", "data_errors", "find_tar", "open_tar", "read_parts", "require_format"]


def _itself(file: IO[bytes]) -> IO[bytes]:
    return file


_OPENERS = cast(
    "dict[str, Callable[[IO[bytes]], IO[bytes]]]",
    {"": _itself, ".gz": gzip.open, ".xz": open_xz, ".bz2": bz2.BZ2File, ".zst": zstd.ZstdFile},
)
_DATA_ERRORS = (*TAR_ERRORS, lzma.LZMAError, zlib.error, zstd.ZstdError, OSError)

_FORMAT = "debian-binary"
_FORMAT_LINE = re.compile(rb"2\.[0-9]+\n")
_LONGEST_FORMAT = 16
"""Bytes of the member that says the format."""
_MEMBERS = f"the members {_FORMAT}, control.tar and data.tar"


class DebError(InputError):
    """A file that is not a usable Debian binary package."""


class DebPart(msgspec.Struct, frozen=True):
    """A member of the ar archive."""

    name: str
    offset: int
    size: int


@contextmanager
def open_tar(path: Path, file: IO[bytes], part: DebPart, progress: Progress) -> Iterator[BoundedTar]:
    """Open the tar ``part`` of the package ``path``, which is open as ``file``, for one pass."""
    suffix = part.name.partition(".tar")[2]
    window = cast("IO[bytes]", io.BufferedReader(_Window(file, part, progress), 1 << 20))
    with data_errors(path, part.name):
        content = BoundedStream(_OPENERS[suffix](window), most_unpacked(part.size))
        with open_tar_stream(cast("IO[bytes]", content)) as tar:
            yield tar


@contextmanager
def data_errors(path: Path, part: str) -> Iterator[None]:
    """Raise `DebError` about ``part`` of a package for whatever its codec or its tar raises."""
    try:
        yield
    except SparseMemberError as e:
        raise DebError(path, str(e), expected="files stored in full") from e
    except ExpansionError as e:
        raise DebError(path, f"{part} {e}", expected=BOUND, remedy=CAUTION) from e
    except _DATA_ERRORS as e:
        raise DebError(path, f"{part} is corrupt or cut off ({e})", remedy="Download the package again.") from e


class _Window(io.RawIOBase):
    """The bytes of one ar member as a file that can only be read forward."""

    def __init__(self, file: IO[bytes], part: DebPart, progress: Progress) -> None:
        super().__init__()
        self._file, self._position, self._left, self._progress = file, part.offset, part.size, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))[: self._left]
        self._file.seek(self._position)
        got: int = cast("io.BufferedReader", self._file).readinto(view)
        self._position += got
        self._left -= got
        self._progress.advance(got)
        return got


def read_parts(path: Path, file: IO[bytes]) -> Iterator[DebPart]:
    """Yield the members of the ar archive ``file``; raise `DebError` when it is not one, or damaged."""
    if file.read(len(AR_MAGIC)) != AR_MAGIC:
        raise DebError(path, "not an ar archive", expected="a Debian package (.deb)")
    end = file.seek(0, io.SEEK_END)
    offset = len(AR_MAGIC)
    while offset < end:
        file.seek(offset)
        header = parse_ar_header(file.read(AR_HEADER_SIZE))
        if header is None:
            raise DebError(path, f"broken ar header at byte {offset}", remedy="Download the package again.")
        name = header.name.decode("ascii", "replace").strip().rstrip("/")
        part = DebPart(name, offset + AR_HEADER_SIZE, header.size)
        if part.offset + part.size > end:
            raise DebError(
                path,
                f"cut off in {part.name} ({count(end - part.offset, 'byte')} left)",
                expected=count(part.size, "byte"),
                remedy="Download the package again.",
            )
        yield part
        offset = part.offset + header.padded_size


def require_format(path: Path, file: IO[bytes], parts: Sequence[DebPart]) -> None:
    """Raise `DebError` unless the first part says format 2: a minor number may be any, as deb(5) says."""
    first = parts[0] if parts else None
    if first is None or first.name != _FORMAT:
        raise DebError(path, f"begins with {first.name}" if first else "holds nothing", expected=_MEMBERS)
    file.seek(first.offset)
    version = file.read(min(first.size, _LONGEST_FORMAT))
    if not _FORMAT_LINE.match(version):
        found = f"is of format {quoted(version.decode('ascii', 'replace'))}"
        raise DebError(path, found, expected="a line such as 2.0, as deb(5) has it")


def find_tar(path: Path, parts: dict[str, DebPart], stem: str) -> DebPart:
    """Return the member ``stem`` of a package, whatever its compression; raise `DebError` when there is none."""
    for name, part in parts.items():
        if name.startswith(stem):
            if name.removeprefix(stem) in _OPENERS:
                return part
            raise DebError(
                path,
                f"{name} has an unknown compression",
                expected=", ".join(stem + suffix for suffix in _OPENERS),
            )
    raise DebError(path, f"holds no {stem}", expected=_MEMBERS)
