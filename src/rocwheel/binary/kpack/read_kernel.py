"""The code objects in a kpack archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.errors import Place
from rocwheel.binary.kpack.errors import KpackError
from rocwheel.binary.kpack.frames import iter_frame
from rocwheel.binary.kpack.toc import Scheme
from rocwheel.core.messages import count
from rocwheel.core.reading import iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.core.reading import Data

__all__ = ["KERNEL_LIMIT", "iter_kernel", "read_kernel"]

KERNEL_LIMIT = 1 << 30
"""The largest code object that is read into memory, in bytes; ROCm's largest takes a tenth of that."""


def iter_kernel(data: Data, archive: KpackArchive, entry: KpackEntry, *, limit: int | None = None) -> Iterator[Data]:
    """Yield a code object of ``archive``, which is ``data``, in pieces of a few megabytes.

    Raises `KpackError` when it is damaged or has not the size that the table says, at the latest after the last piece:
    what was yielded before is to be thrown away. The pieces never come to more than that size. One of more than
    ``limit`` bytes is refused before the first.
    """
    place = Place(archive.name, entry.offset)
    if limit is not None and entry.size > limit:
        found = f"{entry.key} for {entry.target} is said to have {entry.size} bytes"
        raise KpackError(place, found, expected=f"at most {limit}")
    stored = data[entry.offset : entry.offset + entry.stored_size]
    if archive.scheme is Scheme.ZSTD:
        for piece in iter_frame(stored, entry.size, place=place):
            yield memoryview(piece)
        return
    if entry.stored_size != entry.size:
        found = f"{entry.key} for {entry.target} takes {count(entry.stored_size, 'byte')}"
        raise KpackError(place, found, expected=f"{entry.size}, its declared size")
    yield from iter_pieces(stored)


def read_kernel(data: Data, archive: KpackArchive, entry: KpackEntry, *, limit: int = KERNEL_LIMIT) -> memoryview:
    """Return a code object as `iter_kernel` does, whole; raises `KpackError` also for one of more than ``limit`` bytes.

    Memory holds no more than it is, whatever size is declared.
    """
    code = bytearray()
    for piece in iter_kernel(data, archive, entry, limit=limit):
        code += piece if isinstance(piece, memoryview) else bytes(piece)
    return memoryview(code).toreadonly()
