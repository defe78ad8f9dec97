"""The tasks that workers run: pack members into a piece with a small description, or assemble pieces into a wheel."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.build.building import BuiltDistribution
from rocwheel.build.cluster.exchange import Exchange, on_worker
from rocwheel.build.cluster.workers import WorkerFacts, require_like
from rocwheel.build.members import (
    PlacedMember,
    add_member,
    is_compressed,
    member_content,
    stream_format,
    wheel_metadata,
)
from rocwheel.core.errors import WorkError
from rocwheel.core.progress import SILENT
from rocwheel.core.scratch import temporary_folder, write_all
from rocwheel.core.workers import BYTES_IN_WORK, open_workers
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url
from rocwheel.wheels.content import Digest, Hasher
from rocwheel.wheels.packing import Packer, Span, digest_spans, encode_span, level_for, pack_span
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.writing import OpenWheel, WheelWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.build.plan import PlannedWheel
    from rocwheel.stores.store import Store
    from rocwheel.wheels.content import Content


class Settings(msgspec.Struct, frozen=True):
    """The settings that all tasks of a build share."""

    exchange: Exchange
    destination: str
    """The folder, or the URL of a store, for wheels."""
    level: int
    source_date: SourceDate
    facts: WorkerFacts
    """The facts about the process that started the build. Workers that join later are compared with these facts."""


class Section(msgspec.Struct, frozen=True):
    """The bytes of a piece that are part of one member."""

    size: int
    opening: tuple[str, int, int, int] | None
    """The name, mode, method, and maximum size that begin the member, or `None` if an earlier section has them."""
    digest: Digest | None = None
    """The digest of the unpacked member, if it was packed as a whole."""
    is_last: bool = True


class Piece(msgspec.Struct, frozen=True):
    """Packed bytes in the exchange."""

    start: int
    """The index of the piece's first member in the group, or the offset of the piece's first byte in the member."""
    name: str
    sha256: str
    sections: tuple[Section, ...]
    crc32: int = 0
    """The CRC-32 of the unpacked bytes, if the piece is a part of a member."""


class Hashed(msgspec.Struct, frozen=True):
    """The digest of a member that is packed in parts, and the CRC-32 of each part."""

    digest: Digest
    crc32s: tuple[int, ...]


def pack_group(settings: Settings, first: int, members: Sequence[PlacedMember]) -> Piece:
    """Pack members into one piece. ``first`` is the index of the first member in its group."""
    require_like(settings.facts)
    with _new_piece(settings.exchange) as piece, open_workers(1) as executor:
        packer = Packer(executor, settings.level, budget=BYTES_IN_WORK)
        target = OpenWheel(piece, packer, SILENT, lambda _: None)
        for placed in map(on_worker, members):
            add_member(target, placed, mtime=settings.source_date.seconds, executor=executor)
        packer.drain()
    return Piece(first, piece.name, piece.sha256.hexdigest(), tuple(piece.sections))


def pack_cut(settings: Settings, name: str, span: Span) -> Piece:
    """Pack a span of the member that has this name in the exchange."""
    require_like(settings.facts)
    placed, content, level = _cut_member(settings.exchange, name, settings.source_date.seconds, settings.level)
    encoding = stream_format(placed.member)
    with _new_piece(settings.exchange) as piece:
        if encoding:
            facts = encode_span(content, span, encoding, piece.write)
        else:
            facts = pack_span(content, span, level, piece.write)
    opening = None if span.start else (placed.name, placed.mode, facts.method, facts.bound)
    section = Section(piece.size, opening, is_last=span.stop is None)
    return Piece(span.start, piece.name, piece.sha256.hexdigest(), (section,), facts.crc32)


def hash_member(settings: Settings, name: str, spans: Sequence[Span]) -> Hashed:
    """Return the digest of the member that has this name in the exchange, and the CRC-32 of each span."""
    require_like(settings.facts)
    content = _cut_member(settings.exchange, name, settings.source_date.seconds, settings.level)[1]
    return Hashed(*digest_spans(content, spans))


@lru_cache(maxsize=4)
def _cut_member(exchange: Exchange, name: str, mtime: int, level: int) -> tuple[PlacedMember, Content, int]:
    """Return a member, its content, and the level for all its spans, which is the level that `add_member` would choose.

    If the member is a tar, all its edited files must be read to plan the content.
    """
    placed = on_worker(exchange.load_member(name))
    content = member_content(placed.member, mtime=mtime)
    is_packed = stream_format(placed.member) is not None or is_compressed(placed.member)
    return placed, content, 0 if is_packed else level_for(content, level)


class _NewPiece:
    """Writes members into a piece and records their sections. Implements `rocwheel.wheels.packing.Sink`."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.sections: list[Section] = []
        self._file = file
        self._opening = ("", 0, 0, 0)
        self._start = 0

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member."""
        self._opening, self._start = (name, mode, method, size), self.size

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:  # noqa: ARG002 (the sink's)
        """Append packed bytes."""
        write_all(self._file, memoryview(data))
        self.sha256.update(data)
        self.size += len(data)

    def end(self, digest: Digest) -> None:
        """Finish the member."""
        self.sections.append(Section(self.size - self._start, self._opening, digest))


@contextmanager
def _new_piece(exchange: Exchange) -> Iterator[_NewPiece]:
    with exchange.new_piece() as (name, file):
        yield _NewPiece(name, file)


def assemble(
    settings: Settings, wheel: PlannedWheel, pieces: Sequence[Piece], digests: Mapping[str, Digest]
) -> BuiltDistribution:
    """Write a wheel to its destination.

    ``digests`` contains the digests of members that were deflated or stored in parts. Raises
    `WorkError` if a piece can't be read or the wheel can't be written.
    """
    name = f"{wheel.folder}/{wheel.name.file_name}".lstrip("/")
    if not is_url(settings.destination):
        return _write(settings, wheel, pieces, digests, Path(settings.destination, name))
    with tempfile.TemporaryDirectory(prefix="rocwheel-", dir=temporary_folder()) as folder:
        written = _write(settings, wheel, pieces, digests, Path(folder, wheel.name.file_name))
        store = open_store(settings.destination)
        store.put(name, Path(written.path), create=False)
        return msgspec.structs.replace(written, path=store.place(name))


def _write(
    settings: Settings, wheel: PlannedWheel, pieces: Sequence[Piece], digests: Mapping[str, Digest], path: Path
) -> BuiltDistribution:
    writer = WheelWriter(path, wheel.name.dist_info, settings.source_date.zip_time, is_hashed=True)
    store = settings.exchange.store()
    name, hasher = "", Hasher()
    try:
        for piece in pieces:
            data = _PieceReader(store, piece)
            for section in piece.sections:
                if section.opening is not None:
                    writer.begin(*section.opening)
                    name, hasher = section.opening[0], Hasher()
                digest = section.digest or digests.get(name)
                for part in data.take(section.size):
                    writer.write(part)
                    if digest is None:  # a member that is itself a compressed stream: hash the written bytes
                        hasher.update(part)
                if section.is_last:
                    writer.end(digest or hasher.digest())
            data.finish()
        writer.close(wheel_metadata(wheel))
    except BaseException:
        writer.abort()
        raise
    return BuiltDistribution(str(path), path.stat().st_size, writer.sha256)


class _PieceReader:
    """Reads a piece sequentially and verifies its hash."""

    def __init__(self, store: Store, piece: Piece) -> None:
        is_empty = not any(section.size for section in piece.sections)
        self._parts: Iterator[bytes] = iter([]) if is_empty else store.stream(piece.name)
        self._sha256 = hashlib.sha256()
        self._rest = memoryview(b"")
        self._place = store.place(piece.name)
        self._expected = piece.sha256

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next ``size`` bytes."""
        while size:
            if not self._rest:
                data = next(self._parts, b"")
                if not data:
                    raise self._error()
                self._sha256.update(data)
                self._rest = memoryview(data)
            part, self._rest = self._rest[:size], self._rest[size:]
            size -= len(part)
            yield part

    def finish(self) -> None:
        """Raise `WorkError` unless the piece ends here and its bytes match what the worker stored."""
        is_at_end = not self._rest and not any(self._parts)
        if not is_at_end or self._sha256.hexdigest() != self._expected:
            raise self._error()

    def _error(self) -> WorkError:
        return WorkError(self._place, "is not the piece that a worker stored", remedy="Run the build again.")
