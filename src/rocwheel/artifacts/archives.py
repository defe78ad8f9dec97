"""Reads and writes artifact archives, which are tar files that begin with the manifest.

Archives are decompressed only once. Written archives are reproducible.
"""

from __future__ import annotations

import enum
import io
import lzma
import os
import tarfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Protocol, cast

from rocwheel.artifacts.artifact import (
    MANIFEST_NAME,
    MAX_MANIFEST_SIZE,
    PERMISSIONS,
    Artifact,
    FileKind,
    Member,
    checked,
    format_stages,
    parse_stages,
    place,
)
from rocwheel.core.compression import BOUND, BoundedStream, ExpansionError, most_unpacked, open_xz, zstd
from rocwheel.core.errors import InputError, RocwheelError, read_error
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import FileRange, open_regular, open_unchanged
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, unreadable, write_all
from rocwheel.core.writing import AtomicFile, atomic_file
from rocwheel.wheels.tar import TAR_ERRORS, BoundedTar, SparseMemberError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rocwheel.artifacts.artifact import ArtifactName
    from rocwheel.wheels.sdist import SourceDate


_READ_CHUNK = 1 << 20
_STEP = 64 << 20
_DECODER_ERRORS = (EOFError, OSError, lzma.LZMAError, zstd.ZstdError)


def decompress(archive: Path, *, advance: Callable[[int], None] = SILENT.advance) -> IO[bytes]:
    """Decompress a ``.tar.xz`` or ``.tar.zst`` into an unnamed temporary file, and return the open file.

    The file is in the folder that ``TMPDIR`` specifies. It disappears when it is closed, even if the process dies.
    ``advance`` is called with the number of compressed bytes as they are read. Raises `InputError` if the archive can't
    be read, is corrupt or truncated, or expands far more than libraries do. Raises `WorkError` if the temporary folder
    is nearly full or not writable.
    """
    with ExitStack() as stack:
        try:
            spool = stack.enter_context(open_temporary())
            _fill(spool, archive, advance)
        except OSError as e:
            raise no_room(archive, "its decompressed content", e) from e
        stack.pop_all()
        return spool


def _fill(spool: IO[bytes], archive: Path, advance: Callable[[int], None]) -> None:
    size = 0
    for data in _decompressed_chunks(archive, advance):
        if size // _STEP != (size + len(data)) // _STEP:
            require_room(spool, _STEP)
        write_all(spool, data)
        size += len(data)


def peek(archive: Path, size: int) -> bytes:
    """Return the first ``size`` decompressed bytes of an archive, or all its bytes if there are fewer."""
    try:
        with open_regular(archive) as raw, _decoder(archive, raw) as stream:
            return stream.read(size)
    except _DECODER_ERRORS:
        return b""


def _decompressed_chunks(archive: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    try:
        with open_unchanged(archive) as raw, _decoder(archive, raw) as stream:
            reported = 0
            bounded = BoundedStream(stream, most_unpacked(os.fstat(raw.fileno()).st_size))
            while data := bounded.read(_READ_CHUNK):
                yield data
                advance(raw.tell() - reported)
                reported = raw.tell()
            advance(raw.tell() - reported)
    except ExpansionError as e:
        remedy = "If you trust the archive, unpack it yourself and use the folder instead."
        raise InputError(archive, str(e), expected=BOUND, remedy=remedy) from e
    except EOFError as e:
        raise InputError(
            archive, "is truncated: its compressed data ends early", remedy="Download or create the archive again."
        ) from e
    except (lzma.LZMAError, zstd.ZstdError) as e:
        raise InputError(archive, f"can't be decompressed ({e})", remedy="Download or create the archive again.") from e
    except OSError as e:
        raise read_error(archive, e) from e


def _decoder(archive: Path, raw: IO[bytes]) -> IO[bytes]:
    if archive.name.endswith(".xz"):
        return open_xz(raw)
    return cast("IO[bytes]", zstd.ZstdFile(raw))


def read_artifact_archive(archive: Path, name: ArtifactName, tar: IO[bytes]) -> Artifact:
    """List the members of ``archive`` in order of their paths. ``tar`` is the open file with the decompressed archive.

    The file ranges of the members are valid while ``tar`` is open. Raises `InputError` or `ProblemsError` if the tar is
    malformed or truncated, or if the manifest is not its first member. Also rejects each member that is sparse, a
    device or FIFO, a hard link to a later or missing member, or unsafe (see `checked`). Raises `WorkError` if ``tar``
    can't be read.
    """
    # The buffered reader continues if the file system returns fewer bytes than requested.
    buffered = io.BufferedReader(cast("io.RawIOBase", tar))
    try:
        infos = _read_headers(archive, buffered)
        stages = _read_stages(archive, buffered, infos)
    except OSError as e:
        what = f"the decompressed content of {archive}"
        raise unreadable(what, e) from e
    finally:
        buffered.detach()
    problems: list[RocwheelError] = []
    members = sorted(_members(archive, infos, path_of(tar), problems), key=lambda member: member.path)
    return checked(Artifact(name, str(archive), stages, tuple(members)), problems)


def _members(
    archive: Path, infos: list[tarfile.TarInfo], tar_path: str, problems: list[RocwheelError]
) -> Iterator[Member]:
    found: dict[str, Member] = {}
    for info in infos:
        try:
            member = _member(info, tar_path, found, place(archive, info.name))
        except InputError as e:  # noqa: PERF203  # each member has its own problems
            problems.append(e)
        else:
            found[member.path] = member
            yield member


def _read_headers(archive: Path, tar: IO[bytes]) -> list[tarfile.TarInfo]:
    tar.seek(0)
    try:
        with BoundedTar.open(fileobj=tar, mode="r:") as reader:
            infos = [info for info in reader.forward() if _normalized(info.name) != "."]
            _check_end(archive, tar, reader.offset)
    except SparseMemberError as e:
        expected = "complete files (tar without --sparse)"
        raise InputError(place(archive, e.name), "is a sparse member", expected=expected) from e
    except TAR_ERRORS as e:
        raise _malformed(archive, str(e)) from e
    return infos


def _check_end(archive: Path, tar: IO[bytes], end: int) -> None:
    tar.seek(end)
    while data := tar.read(_READ_CHUNK):
        if data.count(0) != len(data):
            raise _malformed(archive, f"there is no header or end of archive at byte {end}")


def _read_stages(archive: Path, tar: IO[bytes], infos: list[tarfile.TarInfo]) -> tuple[str, ...]:
    if not infos or _normalized(infos[0].name) != MANIFEST_NAME or not infos[0].isreg():
        kind = "" if not infos or infos[0].isreg() else ", which is not a regular file"
        first = f"begins with {infos[0].name!r}{kind}" if infos else "has no members"
        remedy = "Create the archive with 'rocwheel artifacts archive'."
        raise InputError(archive, first, expected=f"{MANIFEST_NAME} as the first member", remedy=remedy)
    source = place(archive, MANIFEST_NAME)
    if infos[0].size > MAX_MANIFEST_SIZE:
        raise InputError(source, f"is larger than {MAX_MANIFEST_SIZE} bytes", expected="a manifest with a few lines")
    tar.seek(infos[0].offset_data)
    return parse_stages(tar.read(infos[0].size), source)


def _member(info: tarfile.TarInfo, tar_path: str, found: dict[str, Member], source: str) -> Member:
    path = _normalized(info.name)
    mode = info.mode & PERMISSIONS
    if info.isdir():
        return Member(path, FileKind.DIRECTORY, mode)
    if info.issym():
        return Member(path, FileKind.SYMLINK, PERMISSIONS, link=info.linkname)
    if info.islnk():
        target = found.get(named := _normalized(info.linkname))
        if target is None or target.kind is not FileKind.FILE:
            problem, expected = f"is a hard link to {named!r}", "a link to an earlier file"
            raise InputError(source, problem, expected=expected)
        return Member(path, FileKind.FILE, mode, source=target.source)
    if not info.isreg():
        raise InputError(
            source, "is a device or FIFO, or has an unknown type", expected="only files, links, and folders"
        )
    return Member(path, FileKind.FILE, mode, source=FileRange(tar_path, info.offset_data, info.size))


def _normalized(name: str) -> str:
    return name.removeprefix("./").rstrip("/") or name[:1]


def _malformed(archive: Path, why: str) -> InputError:
    return InputError(
        archive, f"does not contain a valid tar archive ({why})", remedy="Download or create the archive again."
    )


_CHUNK = 16 << 20
_TYPES = {FileKind.FILE: tarfile.REGTYPE, FileKind.SYMLINK: tarfile.SYMTYPE, FileKind.DIRECTORY: tarfile.DIRTYPE}

_XZ_PRESET = 6
_ZSTD_OPTIONS: dict[int, int] = {
    # Device code for different targets is similar, but far apart. Every decoder supports windows up to 2^27.
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.window_log: 27,
    zstd.CompressionParameter.checksum_flag: 1,
}


class ArchiveFormat(enum.Enum):
    """The compression of an archive. The value is the suffix after ``.tar.``."""

    XZ = "xz"
    ZST = "zst"


class _Compressor(Protocol):
    def compress(self, data: bytes | memoryview) -> bytes: ...

    def flush(self) -> bytes: ...


def write_archive(
    artifact: Artifact, folder: Path, archive_format: ArchiveFormat, date: SourceDate, *, advance: Callable[[int], None]
) -> Path:
    """Write ``artifact`` as an archive into ``folder`` and return its path.

    ``advance`` is called with the number of bytes packed. Members are sorted, owned by root, and dated ``date``. Raises
    `WorkError` if the archive can't be written, and `InputError` if a member can't be read. In both cases, the
    unfinished archive is removed.
    """
    path = folder / f"{artifact.name}.tar.{archive_format.value}"
    with atomic_file(path) as file:
        writer = _TarWriter(file, _make_compressor(archive_format), date.seconds)
        writer.add_bytes(MANIFEST_NAME, format_stages(artifact.stages))
        for member in artifact.members:
            writer.add(member, advance)
        writer.finish()
    return path


class _TarWriter:
    """Writes the headers and contents of members into a compressed file."""

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
        """Add a member with its content."""
        size = member.source.size if member.source else 0
        self._put(self._header(member.path, member.kind, member.plain_mode, size, member.link or ""))
        for start in range(0, size, _CHUNK):
            assert member.source is not None
            data = member.source.part(start, min(start + _CHUNK, size)).read()
            self._put(data)
            advance(len(data))
        self._pad(tarfile.BLOCKSIZE)

    def finish(self) -> None:
        """Add the end of the archive, which is two blocks of zeros, and pad the last record."""
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
