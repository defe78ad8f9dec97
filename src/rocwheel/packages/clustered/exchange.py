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

from rocwheel.foundation.errors import WorkError
from rocwheel.foundation.files.stand_ins import stand_below
from rocwheel.packages.building.members import PlacedMember
from rocwheel.stores.folder_store import FolderStore
from rocwheel.stores.open_store import open_store
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.stores.store import Store

__all__ = ["CHUNK", "Exchange"]

CHUNK = 16 << 20
"""Bytes of an object of a file's; the last one has fewer."""


class Exchange(msgspec.Struct, frozen=True):
    """The place, by the path of a folder or the URL of a part of a store; each process opens it for itself."""

    place: str

    def store(self) -> Store:
        """Return the store that the place is."""
        return _opened(self.place)

    def put_piece(self, name: str, source: bytes | Path) -> None:
        """Store packed bytes; raise `WorkError` where the build has ended, and its folder is gone."""
        if not is_url(self.place) and not Path(self.place).is_dir():
            raise WorkError(self.place, "is gone: the build has ended")
        self.store().put(name, source, create=False)

    def input_path(self, number: int, size: int) -> str:
        """Return the path that a file of ``size`` bytes has on the workers."""
        return f"{self._beginning}inputs/{number:06d}-{size}"

    @property
    def _beginning(self) -> str:
        # No path of a real file begins so.
        return f"exchange:{self.place}/"

    def put_chunk(self, path: str, number: int, data: bytes) -> None:
        """Store a part of the file that has this path."""
        self.store().put(_chunk(self._name(path), number), data, create=False)

    def attach(self) -> None:
        """Let this process read files by the paths that they have on workers."""
        stand_below(self._beginning, self._source)

    def _source(self, path: str) -> _ChunkedFile:
        name = self._name(path)
        return _ChunkedFile(self.store(), name, int(name.rpartition("-")[2]))

    def _name(self, path: str) -> str:
        return path.removeprefix(self._beginning)

    def put_member(self, wheel: int, unit: int, placed: PlacedMember) -> str:
        """Store a member, known by the numbers of its wheel and unit, and return its name."""
        name = f"members/{wheel}-{unit}"
        self.store().put(name, msgspec.msgpack.encode(placed), create=False)
        return name

    def load_member(self, name: str) -> PlacedMember:
        """Return a member by its name; raise `WorkError` for what is none, as it was damaged on its way."""
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


def _chunk(name: str, number: int) -> str:
    return f"{name}/{number:06d}"


class _ChunkedFile:
    """A file of the exchange: a `rocwheel.foundation.files.stand_ins.ByteSource`."""

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
