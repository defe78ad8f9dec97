"""The place through which workers get what is not on their machines, and give what they packed: a folder or a store.

It lies below the destination and goes when the build ends.

| name | what it is |
|---|---|
| ``inputs/NUMBER-SIZE/CHUNK`` | `CHUNK` bytes of a file that workers can't read by its path |
| ``members/WHEEL-UNIT`` | a member that several tasks pack parts of |
| ``pieces/NAME`` | packed bytes, in the order in which they stand in their wheel |
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import WorkError, write_error
from rocwheel.core.reading import open_unchanged
from rocwheel.core.remote_placeholders import stand_below
from rocwheel.core.writing import AtomicFile
from rocwheel.packages.building.members import PlacedMember
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.stores.store import Store

__all__ = ["CHUNK", "Exchange", "attach_exchanges"]

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
