"""What workers do: members become a piece in the exchange and a small record, and the pieces become a wheel."""

from __future__ import annotations

import hashlib
import io
import tempfile
import uuid
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from rocwheel.build.cluster.exchange import Exchange, attach_exchanges
from rocwheel.build.cluster.workers import WorkerFacts, require_like
from rocwheel.build.members import PlacedMember, add_member, is_compressed, member_content, wheel_metadata
from rocwheel.build.plan import PlannedWheel, TarMember
from rocwheel.core.errors import WorkError
from rocwheel.core.scratch import no_room, open_temporary, path_of, temporary_folder, write_all
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url
from rocwheel.wheels.content import Digest, Hasher
from rocwheel.wheels.packing import CutFacts, Packer, Span, digest_spans, encode_span, level_for, pack_span
from rocwheel.wheels.writing import WheelWriter
from rocwheel.wheels.zip_writer import ZipTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.stores.store import Store
    from rocwheel.wheels.compression import StreamFormat
    from rocwheel.wheels.content import Content


class Settings(msgspec.Struct, frozen=True):
    """What is the same for all tasks of a build."""

    exchange: Exchange
    level: int
    mtime: int
    """Seconds since 1970 that date the members of tars."""
    facts: WorkerFacts
    """Those of the process that began the build: workers may join that are others."""


class Opening(msgspec.Struct, frozen=True):
    """What a member of a wheel is begun with."""

    name: str
    mode: int
    method: int
    bound: int
    """Bytes at most, unpacked."""


class PackedMember(msgspec.Struct, frozen=True):
    """A member that was packed whole, to ``size`` bytes."""

    opening: Opening
    size: int
    digest: Digest


class StoredPiece(msgspec.Struct, frozen=True):
    """Packed bytes in the exchange."""

    name: str
    size: int
    sha256: str


class Packed(msgspec.Struct, frozen=True):
    """The members of a group, from the ``first`` on: all of it, or those of one of its parts."""

    first: int
    piece: StoredPiece
    members: tuple[PackedMember, ...]


class Cut(msgspec.Struct, frozen=True):
    """A span of a cut member."""

    span: Span
    piece: StoredPiece
    facts: CutFacts


class Hashed(msgspec.Struct, frozen=True):
    """The digest of a cut member, and the CRC-32 of each of its spans."""

    digest: Digest
    crc32s: tuple[int, ...]


class Section(msgspec.Struct, frozen=True):
    """Bytes of a piece that belong to one member."""

    size: int
    opening: Opening | None = None
    """None where an earlier section has begun the member."""
    digest: Digest | None = None
    """That of the unpacked member, at its last section; none for a stream of its own."""
    is_last: bool = True
    is_encoded: bool = False
    """Whether the member is a stream of its own, whose digest is that of what is written."""


class Piece(msgspec.Struct, frozen=True):
    """A stored piece, and what is in it."""

    stored: StoredPiece
    sections: tuple[Section, ...]


class Assembly(msgspec.Struct, frozen=True):
    """A wheel to be put together."""

    wheel: PlannedWheel
    """Without its members."""
    pieces: tuple[Piece, ...]
    moment: ZipTime
    destination: str
    """The folder, or the URL of a store, that it goes to."""


class WrittenWheel(msgspec.Struct, frozen=True):
    """A wheel that has its name."""

    path: str
    size: int
    sha256: str
    """Of the file, in hexadecimal digits."""


_IN_MEMORY = 64 << 20


class Spool:
    """Takes the bytes of one piece; ``stack`` closes what holds them."""

    def __init__(self, stack: ExitStack) -> None:
        self.size = 0
        self._stack = stack
        self._sha256 = hashlib.sha256()
        self._memory = io.BytesIO()
        self._file: IO[bytes] | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; raise `WorkError` when the disk for temporary files is full."""
        self._sha256.update(data)
        self.size += len(data)
        if self._file is None and self.size <= _IN_MEMORY:
            self._memory.write(data)
            return
        try:
            if self._file is None:
                self._file = self._stack.enter_context(open_temporary())
                write_all(self._file, self._memory.getbuffer())
                self._memory = io.BytesIO()
            write_all(self._file, memoryview(data))
        except OSError as e:
            source, what = "a piece of a wheel", "its packed bytes"
            raise no_room(source, what, e) from e

    def store(self, exchange: Exchange) -> StoredPiece:
        """Put the piece into the exchange, under a name that no other has."""
        name = f"pieces/{uuid.uuid4().hex}"
        source = self._memory.getvalue() if self._file is None else Path(path_of(self._file))
        exchange.put_piece(name, source)
        return StoredPiece(name, self.size, self._sha256.hexdigest())


@contextmanager
def open_spool() -> Iterator[Spool]:
    """Yield a spool, whose bytes go with the block."""
    with ExitStack() as stack:
        yield Spool(stack)


def pack_group(settings: Settings, first: int, members: Sequence[PlacedMember]) -> Packed:
    """Pack members into one piece; ``first`` is the place of the first one in its group."""
    _begin(settings)
    with open_spool() as spool:
        target = _Target(Recorder(spool), settings.level)
        for placed in members:
            add_member(target, placed, mtime=settings.mtime, executor=_INLINE)
        target.packer.drain()
        return Packed(first, spool.store(settings.exchange), tuple(target.recorder.members))


def pack_cut(settings: Settings, name: str, span: Span) -> Cut:
    """Pack a span of the member that has this name in the exchange."""
    _begin(settings)
    with open_spool() as spool:
        facts = _pack_span(settings, name, span, spool)
        return Cut(span, spool.store(settings.exchange), facts)


def _pack_span(settings: Settings, name: str, span: Span, spool: Spool) -> CutFacts:
    placed, content = _member(settings.exchange, name, settings.mtime)
    member = placed.member
    if isinstance(member, TarMember) and member.compression != "none":
        return encode_span(content, span, member.compression, spool.write)
    level = _level(settings.exchange, name, settings.mtime, settings.level)
    return pack_span(content, span, level, spool.write)


def hash_member(settings: Settings, name: str, spans: Sequence[Span]) -> Hashed:
    """Return the digest of the member that has this name in the exchange, and the CRC-32 of each of its spans."""
    _begin(settings)
    _, content = _member(settings.exchange, name, settings.mtime)
    return Hashed(*digest_spans(content, spans))


def _begin(settings: Settings) -> None:
    """Prepare this process; raise `VersionError` where it would make other bytes, as a worker that came later may."""
    require_like(settings.facts)
    attach_exchanges()


@lru_cache(maxsize=4)
def _member(exchange: Exchange, name: str, mtime: int) -> tuple[PlacedMember, Content]:
    """Return a member and its content, which takes reading all files of a tar that are edited."""
    placed = exchange.load_member(name)
    return placed, member_content(placed.member, mtime=mtime, executor=_INLINE)


@lru_cache(maxsize=4)
def _level(exchange: Exchange, name: str, mtime: int, level: int) -> int:
    """Return the level that all spans of a member are packed with, as `add_member` decides of a whole one."""
    placed, content = _member(exchange, name, mtime)
    return 0 if is_compressed(placed.member) else level_for(content, level)


class Recorder:
    """A `rocwheel.wheels.packing.Sink` that writes members into a spool, and notes what each is."""

    def __init__(self, spool: Spool) -> None:
        self.members: list[PackedMember] = []
        self._spool = spool
        self._opening: Opening | None = None
        self._start = 0

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member."""
        self._opening = Opening(name, mode, method, size)
        self._start = self._spool.size

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:  # noqa: ARG002 (the sink's)
        """Append packed bytes."""
        self._spool.write(data)

    def end(self, digest: Digest) -> None:
        """Complete the member."""
        assert self._opening is not None, "`begin` comes first"
        self.members.append(PackedMember(self._opening, self._spool.size - self._start, digest))


class _Target:
    """A `rocwheel.build.members.MemberTarget` that packs on the thread of the task."""

    def __init__(self, recorder: Recorder, level: int) -> None:
        self.recorder = recorder
        self.packer = Packer(_INLINE, level)

    def add(self, name: str, mode: int, content: Content) -> None:
        self.packer.add(self.recorder, name, mode, content)

    def add_stored(self, name: str, mode: int, content: Content) -> None:
        self.packer.add_stored(self.recorder, name, mode, content)

    def add_encoded(self, name: str, mode: int, content: Content, encoding: StreamFormat) -> None:
        self.packer.add_encoded(self.recorder, name, mode, content, encoding)


class _InlineExecutor(Executor):
    """Does work at once: a cluster has a task for each of its threads already."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as e:
            future.set_exception(e)
        return future


_INLINE = _InlineExecutor()


def assemble(settings: Settings, assembly: Assembly) -> WrittenWheel:
    """Write a wheel to its destination; raise `WorkError` when that, or reading a piece, fails."""
    wheel = assembly.wheel
    name = f"{wheel.folder}/{wheel.name.file_name}".lstrip("/")
    pieces = settings.exchange.store()
    if not is_url(assembly.destination):
        path = Path(assembly.destination, name)
        return WrittenWheel(str(path), *_write(assembly, path, pieces))
    with tempfile.TemporaryDirectory(prefix="rocwheel-", dir=temporary_folder()) as folder:
        path = Path(folder, wheel.name.file_name)
        size, sha256 = _write(assembly, path, pieces)
        store = open_store(assembly.destination)
        store.put(name, path, create=False)
        return WrittenWheel(store.place(name), size, sha256)


def _write(assembly: Assembly, path: Path, pieces: Store) -> tuple[int, str]:
    """Write a wheel, and return its size and SHA-256."""
    writer = WheelWriter(path, assembly.wheel.name.dist_info, assembly.moment, is_hashed=True)
    try:
        copier = _Copier(writer)
        for piece in assembly.pieces:
            copier.copy(piece, pieces)
        writer.close(wheel_metadata(assembly.wheel))
    except BaseException:
        writer.abort()
        raise
    return path.stat().st_size, writer.sha256


class _Copier:
    """Copies the sections of pieces into a wheel."""

    def __init__(self, writer: WheelWriter) -> None:
        self._writer = writer
        self._hasher = Hasher()
        """Of what a member was packed to, so far."""

    def copy(self, piece: Piece, store: Store) -> None:
        """Append a piece; raise `WorkError` when it is not what was stored."""
        data = _PieceReader(store, piece.stored)
        for section in piece.sections:
            if section.opening is not None:
                self._writer.begin(*msgspec.structs.astuple(section.opening))
                self._hasher = Hasher()
            for part in data.take(section.size):
                self._writer.write(part)
                if section.is_encoded:
                    self._hasher.update(part)
            if section.is_last:
                self._writer.end(section.digest or self._hasher.digest())
        data.finish()


class _PieceReader:
    """Reads a piece in sequence, and compares it with its hash."""

    def __init__(self, store: Store, piece: StoredPiece) -> None:
        self._parts: Iterator[bytes] = store.stream(piece.name) if piece.size else iter([])
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
        """Raise `WorkError` unless the piece ends here, and is what was stored."""
        is_at_end = not self._rest and not any(self._parts)
        if not is_at_end or self._sha256.hexdigest() != self._expected:
            raise self._error()

    def _error(self) -> WorkError:
        return WorkError(self._place, "is not what a worker stored there", remedy="Run the build again.")
