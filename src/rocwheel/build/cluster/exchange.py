"""The place through which workers get what is not on their machines, and give what they packed: a folder or a store.

It lies below the destination and goes when the build ends.

| name | what it is |
|---|---|
| ``inputs/NUMBER-SIZE/CHUNK`` | `CHUNK` bytes of a file that workers can't read by its path |
| ``members/WHEEL-UNIT`` | a member that several tasks pack parts of |
| ``pieces/NAME`` | packed bytes, in the order in which they stand in their wheel |
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.build.cluster.workers import AccessError, Unread, find_unread, require_access
from rocwheel.build.members import PlacedMember
from rocwheel.build.plan import FileMember, TarMember
from rocwheel.core.errors import RocwheelError, WorkError, read_error, write_error
from rocwheel.core.reading import FileRange, FileStamp, open_unchanged
from rocwheel.core.remote_placeholders import stand_below
from rocwheel.core.writing import AtomicFile
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.build.plan import Member, PlannedWheel
    from rocwheel.stores.store import Store


CHUNK = 8 << 20
"""Bytes of an object of a file's; the last one has fewer."""
_BEGINNING = "exchange:"
"""That of the path of each file in an exchange, and of no real file."""
_INPUTS = "/inputs/"
_PIECE = 1 << 20


class Exchange(msgspec.Struct, frozen=True):
    """The place, by the path of a folder or the URL of a part of a store; each process opens it for itself."""

    place: str

    def store(self) -> Store:
        """Return the store that the place is."""
        return _opened(self.place)

    def put_piece(self, name: str, source: bytes | Path) -> None:
        """Store packed bytes; raise `WorkError` where the build has ended, and its folder is gone."""
        if is_url(self.place):
            self.store().put(name, source, create=False)
            return
        try:
            _put_file(Path(self.place, name), source)
        except WorkError as e:
            if not Path(self.place).is_dir():
                raise WorkError(self.place, "is gone: the build has ended") from e
            raise

    def input_path(self, number: int, size: int) -> str:
        """Return the path that a file of ``size`` bytes has on the workers."""
        return f"{_BEGINNING}{self.place}{_INPUTS}{number:06d}-{size}"

    def put_chunk(self, path: str, number: int, data: bytes) -> None:
        """Store a part of the file that has this path."""
        self.store().put(_chunk(_parted(path)[1], number), data, create=False)

    def put_member(self, wheel: int, unit: int, placed: PlacedMember) -> str:
        """Store a member, known by the numbers of its wheel and unit, and return its name."""
        name = f"members/{wheel}-{unit}"
        self.store().put(name, msgspec.msgpack.encode(placed), create=False)
        return name

    def load_member(self, name: str) -> PlacedMember:
        """Return a member by its name; raise `WorkError` for other bytes, damaged on their way."""
        data = self.store().read(name)
        try:
            return msgspec.msgpack.decode(data, type=PlacedMember)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            place = f"{self.place}/{name}"
            found = f"is not a member as the build stored it ({e})"
            raise WorkError(place, found, remedy="Check the store, and build again.") from e


@lru_cache(maxsize=8)
def _opened(place: str) -> Store:
    return open_store(place) if is_url(place) else FolderStore(Path(place), place)


def attach_exchanges() -> None:
    """Let this process read files by the paths that they have on workers, those of all exchanges.

    A worker does that for many builds, and no build tells it when it ends: so it keeps no notes of single builds.
    """
    stand_below(_BEGINNING, _source_at)


def _source_at(path: str) -> _ChunkedFile:
    place, name = _parted(path)
    return _ChunkedFile(_opened(place), name, int(name.rpartition("-")[2]))


def _parted(path: str) -> tuple[str, str]:
    """Return the place of the exchange that a file is in, and its name there."""
    place, inputs, name = path.removeprefix(_BEGINNING).rpartition(_INPUTS)
    return place, inputs.lstrip("/") + name


def _put_file(path: Path, source: bytes | Path) -> None:
    """Write a file two folders deep, whose own folder alone is made where it lacks: the build removes the other one."""
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as e:
        raise write_error(path, e) from e
    file = AtomicFile(path, makes_folder=False)
    try:
        if isinstance(source, bytes):
            file.write(source)
        else:
            with open_unchanged(source) as reader:
                while piece := reader.read(_PIECE):
                    file.write(piece)
        file.commit()
    finally:
        file.discard()


def _chunk(name: str, number: int) -> str:
    return f"{name}/{number:06d}"


class _ChunkedFile:
    """A file of the exchange: a `rocwheel.core.remote_placeholders.ByteSource`."""

    def __init__(self, store: Store, name: str, size: int) -> None:
        self._store = store
        self._name = name
        self.size = size

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two places."""
        chunks = range(start // CHUNK, -(-stop // CHUNK))
        return b"".join(
            self._store.read_range(
                _chunk(self._name, number), max(start - number * CHUNK, 0), min(stop - number * CHUNK, CHUNK)
            )
            for number in chunks
        )

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Do nothing: ranges are read when they are asked for."""


Send = Callable[[Callable[[], None]], None]
"""Begins what sends one chunk; it waits where enough others are on their way."""

AT_ONCE = 2
"""Chunks on their way, and so in memory, there twice while a store takes them."""


@contextmanager
def sending() -> Iterator[Send]:
    """Yield what begins to send; all has arrived when the block ends. Either raises what sending raised."""
    under_way: deque[Future[None]] = deque()

    def send(put: Callable[[], None]) -> None:
        if len(under_way) >= AT_ONCE:
            under_way.popleft().result()
        under_way.append(executor.submit(put))

    with ThreadPoolExecutor(AT_ONCE, "rocwheel-sending") as executor:
        yield send
        while under_way:
            under_way.popleft().result()


_STAGED = FileStamp(0, 0, 0, 0, 0, 1)
"""The stamp of a file in the exchange, which nobody changes."""


def sources(member: Member) -> Iterator[FileRange]:
    """Yield the ranges of files that a member comes from."""
    if isinstance(member, FileMember):
        yield member.source
    elif isinstance(member, TarMember):
        for entry in member.entries:
            if entry.file is not None:
                yield entry.file.source


class Staging:
    """Gives members the sources that workers have; with ``all_files``, they have none but those of the exchange.

    Files that only this process can read, such as an archive that it has unpacked, always go through the exchange.
    Small files share an object. Only a few chunks are in memory at a time.
    """

    def __init__(self, exchange: Exchange, *, all_files: bool) -> None:
        self._exchange = exchange
        self._all_files = all_files
        self._placed: dict[FileRange, FileRange] = {}
        self._count = 0
        self._bundle: list[tuple[FileRange, bytes]] = []
        self._bundle_size = 0

    def is_staged(self, source: FileRange) -> bool:
        """Return whether workers get a range by the exchange."""
        return bool(source.size) and (source.stamp is None or self._all_files)

    def place(self, members: tuple[PlacedMember, ...]) -> tuple[PlacedMember, ...]:
        """Return members as workers can read them; their bytes are in the exchange then.

        Raises `InputError` for a file that can't be read, `ChangedFileError` for one that has changed.
        """
        with sending() as send:
            for placed in members:
                for source in sources(placed.member):
                    if source not in self._placed and self.is_staged(source):
                        self._stage(source, send)
            self._put_bundle(send)
        return tuple(msgspec.structs.replace(placed, member=self._member(placed.member)) for placed in members)

    def _member(self, member: Member) -> Member:
        if isinstance(member, FileMember):
            return self._file(member)
        if isinstance(member, TarMember):
            entries = tuple(
                msgspec.structs.replace(entry, file=entry.file and self._file(entry.file)) for entry in member.entries
            )
            return msgspec.structs.replace(member, entries=entries)
        return member

    def _file(self, member: FileMember) -> FileMember:
        source = member.source
        if not self.is_staged(source):
            return msgspec.structs.replace(member, source=source.for_any_machine())
        return msgspec.structs.replace(member, source=self._placed[source])

    def _stage(self, source: FileRange, send: Send) -> None:
        if source.size < CHUNK:
            if self._bundle_size + source.size > CHUNK:
                self._put_bundle(send)
            self._bundle.append((source, source.read()))
            self._bundle_size += source.size
            return
        path = self._new_path(source.size)
        for number, start in enumerate(range(0, source.size, CHUNK)):
            part = source.part(start, min(start + CHUNK, source.size))
            send(partial(self._put_part, path, number, part))
        self._placed[source] = FileRange(path, 0, source.size, _STAGED)

    def _put_part(self, path: str, number: int, part: FileRange) -> None:
        self._exchange.put_chunk(path, number, part.read())

    def _put_bundle(self, send: Send) -> None:
        if not self._bundle:
            return
        data = b"".join(data for _, data in self._bundle)
        path = self._new_path(len(data))
        send(partial(self._exchange.put_chunk, path, 0, data))
        offset = 0
        for source, part in self._bundle:
            self._placed[source] = FileRange(path, offset, source.size, _STAGED)
            offset += len(part)
        self._bundle.clear()
        self._bundle_size = 0

    def _new_path(self, size: int) -> str:
        self._count += 1
        return self._exchange.input_path(self._count, size)


def shared_inputs(wheels: Iterable[PlannedWheel], staging: Staging) -> dict[str, FileStamp]:
    """Return the files of wheels that workers read by their paths, with their stamps."""
    members = (member for wheel in wheels for member in (*wheel.members, *wheel.licenses))
    found = (source for member in members for source in sources(member) if not staging.is_staged(source))
    return {source.path: source.stamp for source in found if source.stamp is not None}


def require_same(wheel: PlannedWheel, staging: Staging) -> None:
    """Raise `ChangedFileError` for an input of a wheel that has changed, `WorkError` for one that is gone.

    Workers compare size and time alone, which is what all machines see alike; this machine listed the files, and knows
    them by all of their stamps.
    """
    for path, stamp in sorted(shared_inputs([wheel], staging).items()):
        stamp.require(_status(path), path)


def _status(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as e:
        raise read_error(path, e, kind=WorkError) from e


_REMEDY = "Give the worker that folder under the same path, or build into a store (--dest-dir s3://BUCKET/PREFIX)."


def check_access(cluster: Cluster, exchange: Exchange, inputs: Mapping[str, FileStamp]) -> None:
    """Ask every worker for the inputs, files with their stamps, and to read and write the exchange.

    Raises `AccessError` for a worker that can't, `ProblemsError` for several; each names the worker and the input.
    """
    exchange.store().put("probes/from-client", b"probe", create=False)
    shared = [(path, stamp.for_any_machine()) for path, stamp in sorted(inputs.items())]
    answers = cluster.ask(_look, exchange, shared)
    require_access(cluster, answers, remedy=_REMEDY)
    for worker, name in answers.items():
        _require_seen(exchange, worker, name)


def _require_seen(exchange: Exchange, worker: str, name: str) -> None:
    try:
        exchange.store().head(name)
    except RocwheelError as e:
        found = f"writes to another {exchange.place} than this machine reads ({e})"
        raise AccessError(worker, found, remedy="Name a folder that all machines share, or an s3:// URL.") from e


def _look(exchange: Exchange, inputs: Sequence[tuple[str, FileStamp]]) -> str | list[Unread]:
    """Return what this worker can't read, or the name of what it has written into the exchange."""
    try:
        exchange.store().read("probes/from-client")
        name = f"probes/{uuid.uuid4().hex}"
        exchange.put_piece(name, b"probe")
    except RocwheelError as e:
        return [Unread(exchange.place, str(e))]
    return find_unread(inputs) or name
