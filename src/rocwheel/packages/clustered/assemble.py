"""Putting a wheel together on a worker, from the pieces that others have packed."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import WorkError
from rocwheel.core.scratch import temporary_folder
from rocwheel.distributions.content.digest import Hasher
from rocwheel.distributions.formats.wheel import WheelWriter
from rocwheel.packages.building.members import wheel_metadata
from rocwheel.packages.clustered.records import Assembly, Settings, WrittenWheel
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.clustered.records import Piece, StoredPiece
    from rocwheel.stores.store import Store

__all__ = ["assemble"]


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
