"""Writes wheels (binary distribution format 1.0) member by member.

A wheel is given its final name when it is complete.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.core.hashing import FollowingHash, Seal, SealedPart, seal
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileStamp
from rocwheel.core.writing import AtomicFile
from rocwheel.wheels.content import BytesContent
from rocwheel.wheels.file_names import normalized_file_part, with_label
from rocwheel.wheels.member_compression import STORED, pack_whole
from rocwheel.wheels.packing import PACKING_BUDGET, PackedCount, Packer, Sink
from rocwheel.wheels.record import RecordRow, render_record
from rocwheel.wheels.zip_reader import digest_member, iter_packed
from rocwheel.wheels.zip_writer import ZipTime, ZipWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rocwheel.core.cache import EntryStore
    from rocwheel.wheels.content import Content, Digest
    from rocwheel.wheels.member_compression import StreamFormat
    from rocwheel.wheels.zip_reader import ZipMember
    from rocwheel.wheels.zip_writer import ZipTime


_METADATA_LEVEL = 9


class WheelName(msgspec.Struct, frozen=True):
    """The parts of a wheel file name; ``tag`` is the complete compatibility tag, such as ``py3-none-any``."""

    distribution: str
    version: str
    tag: str
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft), or an empty string if there is no label."""

    @property
    def stem(self) -> str:
        """The normalized distribution and version, as in the names of the wheel and its ``.dist-info``."""
        return f"{normalized_file_part(self.distribution)}-{self.version.replace('-', '_')}"

    @property
    def file_name(self) -> str:
        """The wheel's file name."""
        return with_label(f"{self.stem}-{self.tag}.whl", self.label)

    @property
    def dist_info(self) -> str:
        """The name of the metadata folder inside the wheel."""
        return f"{self.stem}.dist-info"


class WheelWriter:
    """A `rocwheel.wheels.packing.Sink` that writes one wheel and its RECORD.

    ``dist_info`` is the name of the metadata folder inside the wheel.

    Members appear in the order in which they are written. As the format recommends, `close` adds the metadata files and
    RECORD at the end. It also syncs the file and gives it its final name. `abort` removes the unfinished file. With
    ``is_hashed``, `close` also sets `sha256`. With ``is_sealed``, it sets `sealed`, which can later show whether the
    file still contains the bytes that were written.
    """

    def __init__(
        self, path: Path, dist_info: str, moment: ZipTime, *, is_sealed: bool = False, is_hashed: bool = False
    ) -> None:
        self.path = path
        self.sha256 = ""
        """The SHA-256 of the file after `close`, in hexadecimal."""
        self.sealed: tuple[FileStamp, Seal] | None = None
        """The file's stamp after `close`, and the hashes of its content."""
        self._is_sealed = is_sealed
        self._is_hashed = is_hashed
        self._hash: FollowingHash | None = None
        self._parts: list[SealedPart] = []
        self._dist_info = dist_info
        self._moment = moment
        self._rows: list[RecordRow] = []
        self._member = ""
        self._stored_from = -1
        """The offset of a stored member's packed bytes, which have the member's digest; negative for other members."""
        self._file: AtomicFile | None = None
        self._zip: ZipWriter | None = None

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes, packed with ``method``.

        The first call creates the file.
        """
        self._member = name
        self._open_zip().begin(name, mode, method, size)
        self._stored_from = self._open_zip().tell() if method == STORED else -1

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:
        """Append packed bytes to the member, with their SHA-256 if it is known."""
        start = self._open_zip().tell()
        self._open_zip().write(data)
        if sha256 and self._stored_from < 0:
            self._parts.append(SealedPart(start, start + len(data), sha256))

    def end(self, digest: Digest) -> None:
        """Finish the member and add it to RECORD."""
        if self._stored_from >= 0:
            self._parts.append(SealedPart(self._stored_from, self._open_zip().tell(), digest.sha256))
        self._open_zip().end(digest.size, digest.crc32)
        self._rows.append(RecordRow(self._member, digest.sha256, digest.size))
        if self._hash:
            self._hash.follow(self._open_zip().tell())

    def close(self, metadata: Mapping[str, bytes]) -> None:
        """Write the files of ``.dist-info``, keyed by name, and then RECORD, and give the wheel its final name."""
        for name, data in metadata.items():
            self._add_now(f"{self._dist_info}/{name}", data)
        record_path = f"{self._dist_info}/RECORD"
        self._add_now(record_path, render_record(self._rows, record_path))
        self._open_zip().close()
        if self._file is not None:
            found = seal(self._file.tell(), self._parts, self._file.read) if self._is_sealed else None
            sha256 = self._hash.finish(self._file.tell()) if self._hash else ""
            self._file.commit()
            if found and self._file.stamp:
                self.sealed = self._file.stamp, found
            self.sha256 = sha256

    def abort(self) -> None:
        """Remove everything that was written. After `close`, this has no effect."""
        if self._file is not None:
            self._file.discard()

    def _add_now(self, name: str, data: bytes) -> None:
        packed = pack_whole(BytesContent(data), _METADATA_LEVEL)
        self.begin(name, 0o644, packed.method, len(data))
        self.write(packed.data)
        self.end(packed.digest)

    def _open_zip(self) -> ZipWriter:
        if self._zip is None:
            self._file = AtomicFile(self.path)
            self._zip = ZipWriter(self._file, self._moment)
            self._hash = FollowingHash(self._file.read) if self._is_hashed else None
        return self._zip


HIGHEST_LEVEL = 12
"""The highest libdeflate level for wheel members."""


@contextmanager
def write_wheels(
    executor: Executor,
    moment: ZipTime,
    *,
    level: int = WHEEL_LEVEL,
    progress: Progress = SILENT,
    kept: EntryStore | None = None,
    is_hashed: bool = False,
    budget: int = PACKING_BUDGET,
) -> Iterator[WheelPacker]:
    """Yield a packer of wheels. At the end of the block, the wheels are complete and have their final names.

    The ``executor`` packs members, ``moment`` is their date, and ``level`` is the libdeflate level; 0 means stored.
    Members in the ``kept`` store aren't packed again. With ``is_hashed``, the packer provides the wheels' hashes.
    ``budget`` is the maximum number of bytes that are processed at the same time. Raises `WorkError` if a wheel can't
    be written. After any exception, no incomplete wheel remains.
    """
    # Closing a wheel syncs it to disk. A separate thread lets the next wheel proceed in the meantime.
    with ThreadPoolExecutor(1, "rocwheel-close") as closer:
        packer = Packer(executor, level, progress=progress, budget=budget, kept=kept)
        make = partial(WheelWriter, moment=moment, is_sealed=kept is not None, is_hashed=is_hashed)
        wheels = WheelPacker(packer, make, closer, progress)
        try:
            yield wheels
            wheels.finish()
        except BaseException:
            wheels.abort()
            raise


class WrittenWheel(msgspec.Struct, frozen=True):
    """A finished wheel, its stamp when it was given its final name, and counts of its packed and cached members."""

    path: Path
    stamp: FileStamp
    seal: Seal
    members: PackedCount
    sha256: str = ""
    """The file's SHA-256 in hexadecimal, if it was requested."""


class WheelPacker:
    """Opens wheels, sequentially or several at once, whose members share the workers of one `Packer`."""

    def __init__(
        self, packer: Packer, make_writer: Callable[..., WheelWriter], closer: Executor, progress: Progress
    ) -> None:
        self._packer = packer
        self._make_writer = make_writer
        self._closer = closer
        self._progress = progress
        self._writers: list[WheelWriter] = []
        self._closing: list[Future[None]] = []
        self._counted = PackedCount()
        self._counts: dict[Path, PackedCount] = {}

    def open(self, path: Path, *, dist_info: str) -> OpenWheel:
        """Begin the wheel at ``path`` with the metadata folder ``dist_info``."""
        writer = self._make_writer(path, dist_info)
        self._writers.append(writer)
        return OpenWheel(writer, self._packer, self._progress, partial(self._close, writer))

    @property
    def count(self) -> PackedCount:
        """The number of written members that were packed, and of members from a cache."""
        return self._packer.count

    @property
    def written(self) -> list[WrittenWheel]:
        """The wheels that already have their final names, if they are sealed."""
        return [
            WrittenWheel(writer.path, *writer.sealed, self._counts[writer.path], writer.sha256)
            for writer in self._writers
            if writer.sealed
        ]

    @property
    def digests(self) -> dict[Path, str]:
        """The hexadecimal SHA-256 of each wheel that already has its final name, if wheels are hashed."""
        return {writer.path: writer.sha256 for writer in self._writers}

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the thread that adds members, after every member added so far is written."""
        self._packer.call(function)

    def drain(self) -> None:
        """Write every member added so far. After that, their contents are no longer read."""
        self._packer.drain()

    def finish(self) -> None:
        """Wait until every closed wheel has its final name."""
        self._packer.drain()
        for future in self._closing:
            future.result()

    def abort(self) -> None:
        """Discard everything that isn't written yet, and remove every incomplete wheel."""
        self._packer.cancel()
        wait([future for future in self._closing if not future.cancel()])
        for writer in self._writers:
            writer.abort()

    def _close(self, writer: WheelWriter, metadata: Mapping[str, bytes]) -> None:
        self._counts[writer.path] = self.count.since(self._counted)
        self._counted = self.count
        self._closing.append(self._closer.submit(writer.close, metadata))


class OpenWheel:
    """An unfinished wheel. Members appear in the order in which they are added."""

    def __init__(
        self, writer: Sink, packer: Packer, progress: Progress, close: Callable[[Mapping[str, bytes]], None]
    ) -> None:
        self._writer = writer
        self._packer = packer
        self._progress = progress
        self._close = close

    def add(self, name: str, mode: int, content: Content) -> None:
        """Add a member, which the workers pack."""
        self._packer.add(self._writer, name, mode, content)

    def add_stored(self, name: str, mode: int, content: Content) -> None:
        """Add a member that is already compressed and isn't deflated again."""
        self._packer.add_stored(self._writer, name, mode, content)

    def add_encoded(self, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        """Add a member whose content is compressed into a separate stream."""
        self._packer.add_encoded(self._writer, name, mode, content, encoding)

    def add_packed(self, member: ZipMember, mode: int, digest: Digest | None = None) -> None:
        """Add a packed member from another archive unchanged. If the member is damaged, `InputError` is raised later.

        If ``digest`` is specified, the member is copied without being unpacked.
        """
        self._packer.call(partial(self._copy, member, mode, digest))

    def close(self, metadata: Mapping[str, bytes]) -> None:
        """Finish the wheel with these files of ``.dist-info`` and RECORD, after its members are written."""
        self._packer.call(partial(self._close, metadata))

    def _copy(self, member: ZipMember, mode: int, digest: Digest | None) -> None:
        self._writer.begin(member.name, mode, member.method, member.size)
        copied = told = 0

        def write(piece: bytes) -> None:
            nonlocal copied, told
            self._writer.write(piece)
            copied += len(piece)
            done = member.size * min(copied, member.packed.size) // max(member.packed.size, 1)
            self._progress.advance(done - told)
            told = done

        if digest is None:
            digest = digest_member(member, copy_to=write)
        else:
            deque(map(write, iter_packed(member)), maxlen=0)
        self._writer.end(digest)
        self._progress.advance(member.size - told)
