"""Writing artifact archives: a pax tar, manifest first, compressed as a stream, the same bytes for the same members."""

from __future__ import annotations

import enum
import lzma
import tarfile
from typing import TYPE_CHECKING, Protocol, cast

from rocwheel.artifacts.model.artifact import FileKind, Member
from rocwheel.artifacts.model.manifest import MANIFEST_NAME, format_manifest
from rocwheel.core.compression import zstd
from rocwheel.core.writing import AtomicFile, atomic_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.artifacts.model.artifact import Artifact
    from rocwheel.distributions.formats.source_date import SourceDate

__all__ = ["ArchiveFormat", "write_archive"]

_CHUNK = 16 << 20
_TYPES = {FileKind.FILE: tarfile.REGTYPE, FileKind.SYMLINK: tarfile.SYMTYPE, FileKind.DIRECTORY: tarfile.DIRTYPE}

_XZ_PRESET = 6
_ZSTD_OPTIONS: dict[int, int] = {
    # Device code repeats itself from target to target, far apart. 2^27 is the largest window that every decoder takes.
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.window_log: 27,
    zstd.CompressionParameter.checksum_flag: 1,
}


class ArchiveFormat(enum.Enum):
    """How an archive is compressed; the value follows ``.tar.`` in its name."""

    XZ = "xz"
    ZST = "zst"


class _Compressor(Protocol):
    def compress(self, data: bytes | memoryview) -> bytes: ...

    def flush(self) -> bytes: ...


def write_archive(
    artifact: Artifact, folder: Path, archive_format: ArchiveFormat, date: SourceDate, *, advance: Callable[[int], None]
) -> Path:
    """Write ``artifact`` as an archive into ``folder`` and return its path.

    ``advance`` is called with the number of bytes packed. Members are sorted and belong to root; all are dated
    ``date``. Raises `WorkError` when the archive can't be written and `InputError` when a member can't be read; then
    nothing is left behind.
    """
    path = folder / f"{artifact.name}.tar.{archive_format.value}"
    with atomic_file(path) as file:
        writer = _TarWriter(file, _make_compressor(archive_format), date.seconds)
        writer.add_bytes(MANIFEST_NAME, format_manifest(artifact.stages))
        for member in artifact.members:
            writer.add(member, advance)
        writer.finish()
    return path


class _TarWriter:
    """Turns members into headers and contents, and these into compressed bytes of a file."""

    def __init__(self, file: AtomicFile, compressor: _Compressor, date: int) -> None:
        self._file = file
        self._compressor = compressor
        self._date = date
        self._size = 0

    def add_bytes(self, path: str, data: bytes) -> None:
        """Add a small generated file."""
        self._put(self._header(path, FileKind.FILE, 0o644, len(data)))
        self._put(data)
        self._pad(tarfile.BLOCKSIZE)

    def add(self, member: Member, advance: Callable[[int], None]) -> None:
        """Add a member with its contents."""
        size = member.source.size if member.source else 0
        self._put(self._header(member.path, member.kind, member.plain_mode, size, member.link or ""))
        for start in range(0, size, _CHUNK):
            assert member.source is not None
            data = member.source.part(start, min(start + _CHUNK, size)).read()
            self._put(data)
            advance(len(data))
        self._pad(tarfile.BLOCKSIZE)

    def finish(self) -> None:
        """Add the end of the archive: two blocks of zeros, and more to fill the last record."""
        self._put(bytes(2 * tarfile.BLOCKSIZE))
        self._pad(tarfile.RECORDSIZE)
        self._file.write(self._compressor.flush())

    def _header(self, path: str, kind: FileKind, mode: int, size: int, link: str = "") -> bytes:
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.size, info.linkname = _TYPES[kind], mode, size, link
        info.mtime, info.uname, info.gname = self._date, "root", "root"
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")

    def _put(self, data: bytes | memoryview) -> None:
        self._size += len(data)
        self._file.write(self._compressor.compress(data))

    def _pad(self, unit: int) -> None:
        self._put(bytes(-self._size % unit))


def _make_compressor(archive_format: ArchiveFormat) -> _Compressor:
    if archive_format is ArchiveFormat.XZ:
        return lzma.LZMACompressor(preset=_XZ_PRESET)
    return cast("_Compressor", zstd.ZstdCompressor(options=_ZSTD_OPTIONS))
