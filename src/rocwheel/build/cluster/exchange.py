"""The exchange, a folder or store with files that workers can't read by path. Workers also return packed bytes there.

The exchange is below the destination and is removed when the build ends.

| name | contents |
|---|---|
| ``inputs/NUMBER-SIZE/CHUNK`` | `CHUNK` bytes of concatenated files that workers can't read by path |
| ``members/WHEEL-UNIT`` | a member that several tasks pack in parts |
| ``pieces/NAME`` | packed bytes, in the order of their wheel |
"""

from __future__ import annotations

import uuid
from collections import deque
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.build.cluster.workers import check_access, find_unusable
from rocwheel.build.members import PlacedMember
from rocwheel.build.plan import FileMember, TarMember, member_files
from rocwheel.core.errors import RocwheelError, WorkError, read_error, write_error
from rocwheel.core.reading import FileRange, FileStamp, RemoteRange
from rocwheel.core.scratch import open_temporary, path_of
from rocwheel.core.workers import open_workers, work_in_order
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rocwheel.build.cluster.workers import Cluster
    from rocwheel.build.plan import PlannedWheel
    from rocwheel.stores.store import Store


CHUNK = 8 << 20
"""The size of an object that contains file bytes. The last object of a sequence may be smaller."""
_AT_ONCE = 2
"""The number of chunks that are transferred at the same time.

Each chunk is in memory twice until the store accepts it.
"""
_BEGINNING = "exchange:"
"""The path prefix of each file in an exchange. No real path starts with this prefix."""
_INPUTS = "/inputs/"
_PROBE = "probes/client"
"""The name of a probe object.

The object has a separate folder, because the folder of the exchange is locked during the build.
"""


class Exchange(msgspec.Struct, frozen=True):
    """An exchange, identified by the path of a folder or by a URL within a store.

    Each process opens the exchange separately.
    """

    place: str

    def store(self) -> Store:
        """Return the store of the exchange."""
        return _opened(self.place)

    @contextmanager
    def new_piece(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the name of a piece and an unbuffered file for its bytes. The piece is stored when the block ends.

        Raises `WorkError` if storing fails, for example, because the build has ended. Workers don't recreate the
        build's folder.
        """
        name = f"pieces/{uuid.uuid4().hex}"
        if is_url(self.place):
            with open_temporary() as file:
                yield name, file
                self.store().put(name, Path(path_of(file)), create=False)
            return
        path = Path(self.place, name)
        try:
            opened = path.open("xb", buffering=0)
        except OSError as e:
            raise write_error(path, e) from e
        with opened:
            yield name, opened

    def input_path(self, number: int, size: int) -> str:
        """Return the path that workers use for concatenated files with a total size of ``size`` bytes."""
        return f"{_BEGINNING}{self.place}{_INPUTS}{number:06d}-{size}"

    def put_chunk(self, path: str, number: int, data: bytes) -> None:
        """Store a chunk of the file with this path."""
        self.store().put(_chunk(_parted(path)[1], number), data, create=False)

    def put_member(self, wheel: int, unit: int, placed: PlacedMember) -> str:
        """Store a member, identified by its wheel and unit numbers, and return the name of the stored object."""
        name = f"members/{wheel}-{unit}"
        self.store().put(name, msgspec.msgpack.encode(placed), create=False)
        return name

    def load_member(self, name: str) -> PlacedMember:
        """Return the member with this name. Raises `WorkError` if its bytes were damaged in transfer."""
        data = self.store().read(name)
        try:
            return msgspec.msgpack.decode(data, type=PlacedMember)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            place = f"{self.place}/{name}"
            found = f"is not the member that the build stored ({e})"
            raise WorkError(place, found, remedy="Check the store, then build again.") from e


@lru_cache(maxsize=8)
def _opened(place: str) -> Store:
    return open_store(place) if is_url(place) else FolderStore(Path(place), place)


def on_worker(placed: PlacedMember) -> PlacedMember:
    """Return a member whose files in the exchange can be read by this process.

    Its other files have the same paths on all machines.
    """
    return _with_sources(placed, _opened_range)


def _opened_range(source: FileRange) -> FileRange:
    if not source.path.startswith(_BEGINNING):
        return source
    file = _ChunkedFile(source.path)
    return RemoteRange(source.path, source.offset, source.size, source.stamp, source=file)


def _with_sources(placed: PlacedMember, change: Callable[[FileRange], FileRange]) -> PlacedMember:
    def changed(file: FileMember) -> FileMember:
        return msgspec.structs.replace(file, source=change(file.source))

    member = placed.member
    if isinstance(member, FileMember):
        member = changed(member)
    elif isinstance(member, TarMember):
        entries = (msgspec.structs.replace(entry, file=entry.file and changed(entry.file)) for entry in member.entries)
        member = msgspec.structs.replace(member, entries=tuple(entries))
    return msgspec.structs.replace(placed, member=member)


def _parted(path: str) -> tuple[str, str]:
    """Split the path of a file in an exchange into the exchange and the file's name."""
    place, inputs, name = path.removeprefix(_BEGINNING).rpartition(_INPUTS)
    return place, inputs.lstrip("/") + name


def _chunk(name: str, number: int) -> str:
    return f"{name}/{number:06d}"


class _ChunkedFile:
    """A file in an exchange. Implements `rocwheel.core.remote_file.ByteSource`."""

    def __init__(self, path: str) -> None:
        place, self._name = _parted(path)
        self._store = _opened(place)
        self.size = int(path.rpartition("-")[2])

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to, but not including, ``stop``."""
        chunks = range(start // CHUNK, -(-stop // CHUNK))
        return b"".join(
            self._store.read_range(
                _chunk(self._name, number), max(start - number * CHUNK, 0), min(stop - number * CHUNK, CHUNK)
            )
            for number in chunks
        )

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Do nothing: ranges are read on demand."""


_STAGED = FileStamp(0, 0, 0, 0, 0, 1)
"""The stamp of a file in the exchange. Such a file never changes."""


class Staging:
    """Provides members with sources that workers can read. With ``all_files``, all sources are in the exchange.

    Files that only this process can read, such as files from an unpacked archive, always go through the exchange. The
    files of members that are needed together are concatenated. Only a few chunks are in memory at a time.
    """

    def __init__(self, exchange: Exchange, *, all_files: bool) -> None:
        self._exchange = exchange
        self._all_files = all_files
        self._placed: dict[FileRange, FileRange] = {}
        self._count = 0

    def is_staged(self, source: FileRange) -> bool:
        """Return whether workers get this file range through the exchange."""
        return bool(source.size) and (source.stamp is None or self._all_files)

    def place(self, members: tuple[PlacedMember, ...]) -> tuple[PlacedMember, ...]:
        """Store the bytes that workers can't read by path, and return members with the new sources.

        Raises `InputError` if a file can't be read, and `ChangedFileError` if a file has changed.
        """
        sources = dict.fromkeys(file.source for placed in members for file in member_files(placed.member))
        if new := [source for source in sources if self.is_staged(source) and source not in self._placed]:
            self._count += 1
            path, offset = self._exchange.input_path(self._count, sum(source.size for source in new)), 0
            for source in new:
                self._placed[source] = FileRange(path, offset, source.size, _STAGED)
                offset += source.size
            chunks = enumerate(_chunks(new))
            work = ((len(data), partial(self._exchange.put_chunk, path, number, data)) for number, data in chunks)
            with open_workers(_AT_ONCE) as executor:
                deque(work_in_order(executor, work, _AT_ONCE * CHUNK), maxlen=0)
        return tuple(_with_sources(placed, self._there) for placed in members)

    def _there(self, source: FileRange) -> FileRange:
        return self._placed[source] if self.is_staged(source) else source.for_any_machine()


def _chunks(sources: Iterable[FileRange]) -> Iterator[bytes]:
    """Yield the concatenated bytes of files in chunks."""
    parts: list[bytes] = []
    room = CHUNK
    for source in sources:
        start = 0
        while start < source.size:
            stop = min(start + room, source.size)
            parts.append(source.part(start, stop).read())
            start, room = stop, room - (stop - start)
            if not room:
                yield b"".join(parts)
                parts, room = [], CHUNK
    if parts:
        yield b"".join(parts)


def shared_inputs(wheels: Iterable[PlannedWheel], staging: Staging) -> dict[str, FileStamp]:
    """Return the files of wheels that workers read by path, with the stamp of each file."""
    members = (member for wheel in wheels for member in (*wheel.members, *wheel.licenses))
    sources = (file.source for member in members for file in member_files(member))
    return {one.path: one.stamp for one in sources if one.stamp is not None and not staging.is_staged(one)}


def require_same(wheel: PlannedWheel, staging: Staging) -> None:
    """Raise `ChangedFileError` if an input of a wheel has changed, and `WorkError` if an input no longer exists.

    Workers compare only the size and time, which look the same on all machines. This machine listed the files and has
    their full stamps.
    """
    for path, stamp in sorted(shared_inputs([wheel], staging).items()):
        try:
            status = Path(path).stat()
        except OSError as e:
            raise read_error(path, e, kind=WorkError) from e
        stamp.require(status, path)


def check_machines(cluster: Cluster, exchange: Exchange, inputs: Mapping[str, FileStamp]) -> None:
    """Make every worker check the inputs against their stamps, and read and write the exchange.

    Raises `AccessError` with the worker and the input if a worker fails, or `ProblemsError` for several workers.
    """
    exchange.store().put(_PROBE, b"probe", create=False)
    remedy = "Make that folder available to the worker at the same path, or build into a store (--dest-dir s3://BUCKET/PREFIX)."
    check_access(cluster, inputs, remedy=remedy, find=partial(_find_unusable, exchange))


def _find_unusable(exchange: Exchange, inputs: Sequence[tuple[str, FileStamp]]) -> list[str]:
    try:
        exchange.store().read(_PROBE)
        with exchange.new_piece():
            pass
    except RocwheelError as e:
        return [f"{exchange.place} ({e})"]
    return find_unusable(inputs)
