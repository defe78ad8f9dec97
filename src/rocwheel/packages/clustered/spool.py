"""Packed bytes on their way into the exchange: in memory, or in a nameless file where they are many."""

from __future__ import annotations

import hashlib
import io
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.core.scratch import no_room, open_temporary, path_of, write_all
from rocwheel.packages.clustered.records import StoredPiece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.clustered.exchange import Exchange

__all__ = ["Spool", "open_spool"]

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
