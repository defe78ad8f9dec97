"""The checksum of an image, as ``CheckSumMappedFile`` of Windows computes it.

The file is taken as numbers of 16 bits, with zeros for the checksum itself; their sum, with carries added at its lower
end, and the file's size make the checksum. Such a sum is that of the numbers modulo 65535, so a change to some bytes
changes it by theirs. The loader checks it for drivers alone; linkers other than GNU ld mostly leave a zero, which means
that nobody made one.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.core.patch import FilePatch, Replacement, patched_view
from rocwheel.core.reading import iter_pieces

if TYPE_CHECKING:
    from rocwheel.binary.pe.header import PeHeader
    from rocwheel.core.reading import Data

__all__ = ["CHECKSUM", "RunningChecksum", "checksum_of", "with_checksum"]

CHECKSUM: Final = Struct("<I")
_MODULUS: Final = 0xFFFF
_STEP: Final = 1 << 16


def checksum_of(data: Data, at: int) -> int:
    """Return the checksum of a file whose header has its own at the file offset ``at``."""
    total = RunningChecksum(data, at)
    return total.value(len(data))


class RunningChecksum:
    """The checksum of a file while ranges of it change; ``data`` are its bytes before that, ``at`` is as above."""

    def __init__(self, data: Data, at: int) -> None:
        self._data, self._at = data, at
        self._sum = _sum_of(data, 0)
        self._sum -= _sum_of(data[at : at + CHECKSUM.size], at)

    def change(self, replacement: Replacement) -> None:
        """Take into account that a range of the file, apart from the checksum, is replaced."""
        self._sum -= _sum_of(self._data[replacement.start : replacement.stop], replacement.start)
        self._sum += _sum_of(replacement.content(self._data), replacement.start)

    def value(self, size: int) -> int:
        """Return the checksum of the file as it is now, of ``size`` bytes."""
        # A sum with carries is zero only for zeros, and a file begins with MZ.
        return (self._sum % _MODULUS or _MODULUS) + size


def _sum_of(data: Data, start: int) -> int:
    """Return the sum, modulo 65535, of bytes that begin at the file offset ``start``."""
    total = 0
    for piece in iter_pieces(data):
        part = _words(bytes(piece))
        total += part << 8 if start % 2 else part
        start += len(piece)
    return total % _MODULUS


def _words(data: bytes) -> int:
    """Return the sum of numbers of 16 bits, modulo 65535.

    As 65536 leaves 1, many bytes as one number leave what the sum of their numbers does. Numbers of 64 KiB take a ninth
    of the time that the division of one large number would.
    """
    return sum(int.from_bytes(data[at : at + _STEP], "little") for at in range(0, len(data), _STEP)) % _MODULUS


def with_checksum(data: Data, header: PeHeader, patch: FilePatch) -> FilePatch:
    """Return ``patch`` for the file ``data`` with the checksum that it then has; none where there was none."""
    if patch.is_identity or not header.checksum:
        return patch
    value = checksum_of(patched_view(data, patch), header.checksum_offset)
    return patch.then(FilePatch(patch.size, (Replacement.of(header.checksum_offset, CHECKSUM.pack(value)),)))
