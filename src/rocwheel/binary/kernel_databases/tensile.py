"""The targets of Tensile's tables (``.dat``, ``.dat.zlib``): MessagePack that may say which processor it is for.

A table that chooses among others may have the predicate ``{"type": "Processor", "value": "gfx906"}`` for the hardware;
those of solutions have none. In Debian's librocblas5 7.2.4, 11 of 515 tables have it, and all agree with their names.
The names of kernels tell an instruction set (``_ISA906_``), which other processors may share.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.machine import known_processors
from rocwheel.core.reading import iter_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.core.reading import Data

__all__ = ["TABLE_SUFFIXES", "table_processors"]

_PACKED = ".dat.zlib"
TABLE_SUFFIXES = (".dat", _PACKED)
"""What the names of tables end with."""

# Texts of less than 32 bytes, as Tensile's writer encodes them: a byte with the length, and the text.
_PREDICATE = re.compile(rb"\xa9Processor\xa5value[\xa0-\xbf](gfx[0-9a-z]+(?:-[0-9a-z]+)*)")
_LONGEST = 64
"""More bytes than a predicate has."""
_LARGEST = 1 << 30
"""How many bytes of a table are looked at."""
_BLOCK = 1 << 20


def table_processors(data: Data, path: str) -> tuple[str, ...]:
    """Return the processors that the table at ``path`` asks the hardware for, sorted; those not known are left out.

    Memory holds a few megabytes of it. A file that is no table, or is damaged, says nothing.
    """
    found: set[str] = set()
    end = b""
    for piece in _unpacked(iter_pieces(data)) if path.endswith(_PACKED) else iter_pieces(data):
        joined = end + piece
        found.update(match[1].decode() for match in _PREDICATE.finditer(joined))
        end = joined[-_LONGEST:]
    return tuple(sorted(found.intersection(known_processors())))


def _unpacked(pieces: Iterable[memoryview]) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    size = 0
    for piece in pieces:
        rest: bytes | memoryview = piece
        while rest and size < _LARGEST:
            try:
                block = stream.decompress(rest, _BLOCK)
            except zlib.error:
                return
            rest = stream.unconsumed_tail
            size += len(block)
            yield block
