"""Reads Debian binary packages, deb(5): an ar archive of ``debian-binary``, ``control.tar`` and ``data.tar``."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from contextlib import contextmanager
from email.parser import HeaderParser
from typing import IO, TYPE_CHECKING, cast

import msgspec

from rocwheel.artifacts.importing.tar_stream import open_tar_stream, tar_members
from rocwheel.artifacts.model.artifact import PERMISSIONS, FileKind
from rocwheel.artifacts.model.paths import path_fault
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files import open_regular
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.foundation.zstd import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Deb", "DebContent", "DebControl", "DebError", "DebMember", "open_deb"]

_MAGIC = b"!<arch>\n"
_HEADER_SIZE = 60
_HEADER_END = b"`\n"
_MAX_CONTROL = 1 << 20


def _itself(file: IO[bytes]) -> IO[bytes]:
    return file


_OPENERS = cast(
    "dict[str, Callable[[IO[bytes]], IO[bytes]]]",
    {"": _itself, ".gz": gzip.open, ".xz": lzma.LZMAFile, ".bz2": bz2.BZ2File, ".zst": zstd.ZstdFile},
)
# The standard library lets the last three through for malformed records of pax.
_DATA_ERRORS = (
    *(tarfile.TarError, lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, OSError),
    *(ValueError, IndexError, OverflowError),
)
_KINDS = {
    tarfile.REGTYPE: FileKind.FILE,
    tarfile.AREGTYPE: FileKind.FILE,
    tarfile.LNKTYPE: FileKind.FILE,
    tarfile.SYMTYPE: FileKind.SYMLINK,
    tarfile.DIRTYPE: FileKind.DIRECTORY,
}


class DebError(InputError):
    """A file that is no usable Debian binary package."""


class DebControl(msgspec.Struct, frozen=True):
    """What a package says about itself in its control file, deb-control(5)."""

    package: str
    version: str
    architecture: str

    @property
    def upstream_version(self) -> str:
        """The version without epoch, Debian revision and repack suffix: ``5.2.3`` for ``1:5.2.3+dfsg-8``."""
        without_epoch = self.version.partition(":")[2] or self.version
        return without_epoch.rpartition("-")[0].partition("+")[0] or without_epoch.partition("+")[0]


class DebContent:
    """The bytes of a member, read forward."""

    def __init__(self, path: Path, part: str, file: IO[bytes]) -> None:
        self._path, self._part, self._file = path, part, file

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, none at the end; raises `DebError` when the data is corrupt or cut off."""
        with _data_errors(self._path, self._part):
            return self._file.read(size)


class DebMember(msgspec.Struct, frozen=True):
    """One file, link or directory of a package; the bytes of a file can be read until the next member is asked for."""

    path: str
    """Relative to the root of the file system, without ``./``."""
    kind: FileKind
    mode: int
    """Permission bits only."""
    size: int
    link: str | None = None
    """The raw text of a symlink."""
    same_as: str | None = None
    """The path of the earlier member that this one is a hard link to; it has no bytes of its own then."""
    content: DebContent | None = None


class _Part(msgspec.Struct, frozen=True):
    """A member of the ar archive."""

    name: str
    offset: int
    size: int


class Deb:
    """An open package: its control fields, and its files as one forward pass."""

    def __init__(self, path: Path, file: IO[bytes], progress: Progress) -> None:
        self.path = path
        self._file = file
        self._progress = progress
        parts = {part.name: part for part in _read_parts(path, file)}
        self._data = _find_tar(path, parts, "data.tar")
        self.control = self._read_control(_find_tar(path, parts, "control.tar"))

    def members(self) -> Iterator[DebMember]:
        """Read the members of ``data.tar`` in their order.

        Raises `DebError` for data that is cut off or corrupt, and for members that no package should hold: absolute
        paths, paths with ``..``, device nodes.
        """
        with self._open_tar(self._data) as tar:
            for info in tar_members(tar):
                if path := _checked_path(self.path, info.name):
                    yield self._member(tar, info, path)

    def _member(self, tar: tarfile.TarFile, info: tarfile.TarInfo, path: str) -> DebMember:
        kind = _KINDS.get(info.type)
        if kind is None:
            raise DebError(self.path, f"{info.name} is a device node or pipe", expected="files, links and folders")
        if info.issparse():
            raise DebError(self.path, f"{info.name} is a sparse member", expected="files stored in full")
        if info.islnk():
            target = _checked_path(self.path, info.linkname)
            return DebMember(path, kind, info.mode & PERMISSIONS, 0, same_as=target)
        if kind is FileKind.SYMLINK:
            return DebMember(path, kind, 0o777, 0, link=info.linkname)
        file = tar.extractfile(info)
        content = DebContent(self.path, self._data.name, file) if file else None
        return DebMember(path, kind, info.mode & PERMISSIONS, info.size, content=content)

    def _read_control(self, part: _Part) -> DebControl:
        with self._open_tar(part) as tar:
            for info in tar:
                if posixpath.normpath(info.name) == "control" and (file := tar.extractfile(info)):
                    if info.size > _MAX_CONTROL:
                        expected = f"at most {_MAX_CONTROL}"
                        raise DebError(self.path, f"its control file has {info.size} bytes", expected=expected)
                    return _parse_control(self.path, file.read().decode("utf-8", "replace"))
        raise DebError(self.path, "holds no control file", expected="control in control.tar")

    @contextmanager
    def _open_tar(self, part: _Part) -> Iterator[tarfile.TarFile]:
        suffix = part.name.partition(".tar")[2]
        window = cast("IO[bytes]", io.BufferedReader(_Window(self._file, part, self._progress), 1 << 20))
        with (
            _data_errors(self.path, part.name),
            open_tar_stream(_OPENERS[suffix](window)) as tar,
        ):
            yield tar


@contextmanager
def _data_errors(path: Path, part: str) -> Iterator[None]:
    try:
        yield
    except _DATA_ERRORS as e:
        raise DebError(path, f"{part} is corrupt or cut off ({e})", remedy="Download the package again.") from e


class _Window(io.RawIOBase):
    """The bytes of one ar member as a file that can only be read forward."""

    def __init__(self, file: IO[bytes], part: _Part, progress: Progress) -> None:
        super().__init__()
        self._file, self._position, self._left, self._progress = file, part.offset, part.size, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))[: self._left]
        self._file.seek(self._position)
        count: int = cast("io.BufferedReader", self._file).readinto(view)
        self._position += count
        self._left -= count
        self._progress.advance(count)
        return count


@contextmanager
def open_deb(path: Path, *, progress: Progress = SILENT) -> Iterator[Deb]:
    """Open a package; ``progress`` advances by the bytes read from the file.

    Raises `DebError` when the file can't be read, is no ar archive, is cut off, or lacks a member.
    """
    try:
        file = open_regular(path)
    except OSError as e:
        raise DebError(path, f"cannot be read ({e.strerror})", remedy="Check that it exists and may be read.") from e
    with file:
        yield Deb(path, file, progress)


def _read_parts(path: Path, file: IO[bytes]) -> Iterator[_Part]:
    """List the ar members: a 60-byte header each (name 16, times and ids 32, size 10, end 2), padded to even size."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise DebError(path, "not an ar archive", expected="a Debian package (.deb)")
    end = file.seek(0, io.SEEK_END)
    offset = len(_MAGIC)
    while offset < end:
        file.seek(offset)
        header = file.read(_HEADER_SIZE)
        if len(header) < _HEADER_SIZE or header[58:] != _HEADER_END or not header[48:58].strip().isdigit():
            raise DebError(path, f"broken ar header at byte {offset}", remedy="Download the package again.")
        part = _Part(header[:16].decode("ascii", "replace").strip().rstrip("/"), offset + 60, int(header[48:58]))
        if part.offset + part.size > end:
            raise DebError(
                path,
                f"cut off in {part.name} ({end - part.offset} bytes left)",
                expected=f"{part.size} bytes",
                remedy="Download the package again.",
            )
        yield part
        offset = part.offset + part.size + part.size % 2


def _find_tar(path: Path, parts: dict[str, _Part], stem: str) -> _Part:
    for name, part in parts.items():
        if name.startswith(stem):
            if name.removeprefix(stem) in _OPENERS:
                return part
            raise DebError(
                path,
                f"{name} has a compression that is not known",
                expected=", ".join(stem + suffix for suffix in _OPENERS),
            )
    raise DebError(path, f"holds no {stem}", expected="the members debian-binary, control.tar and data.tar")


def _parse_control(path: Path, text: str) -> DebControl:
    fields = HeaderParser().parsestr(text)
    missing = [name for name in ("Package", "Version", "Architecture") if not fields.get(name)]
    if missing:
        raise DebError(path, f"its control file lacks {', '.join(missing)}")
    return DebControl(fields["Package"], fields["Version"], fields["Architecture"])


def _checked_path(path: Path, name: str) -> str:
    """Return a member's path in plain form, empty for the root itself."""
    plain = name.removeprefix(".").removeprefix("/") if name.startswith("./") or name == "." else name
    plain = plain.removesuffix("/")
    if plain and (fault := path_fault(plain)):
        raise DebError(path, f"the path {name!r} {fault}", expected="paths inside the package")
    return plain
