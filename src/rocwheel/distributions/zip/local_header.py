"""Local headers of ZIP archives (APPNOTE.TXT 6.3, section 4.3.7), which some programs believe, not the directory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from rocwheel.distributions.zip.extra_fields import ZIP64, iter_extra_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MOST_OF_HEADER", "LocalHeader", "ReadAt", "read_local_header"]

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Returns so many bytes of the archive from an offset, fewer at its end, as pread(2) does."""

_HEADER = struct.Struct("<4s5H3L2H")
MOST_OF_HEADER = _HEADER.size + 64
"""Bytes of a header besides the name, with what writers usually add to it."""
_DESCRIPTOR_FLAG = 0x8
_IN_EXTRA = 0xFFFFFFFF


class LocalHeader(msgspec.Struct, frozen=True):
    """What stands before the content of a member."""

    name: bytes
    version: int
    """Of ZIP, that a program needs in order to unpack the member."""
    flags: int
    method: int
    crc32: int
    packed_size: int
    size: int
    content: int
    """The offset of the packed bytes."""
    extra: bytes
    narrow: tuple[int, int]
    """Size and packed size as the header has them in 32 bits, before a ZIP64 field takes their place."""

    @property
    def is_stream(self) -> bool:
        """Return whether checksum and sizes are said behind the packed bytes, in a descriptor."""
        return bool(self.flags & _DESCRIPTOR_FLAG)

    @property
    def is_zip64(self) -> bool:
        """Return whether a descriptor has sizes of 64 bits, however small (APPNOTE.TXT 4.3.9.2)."""
        return any(kind == ZIP64 for kind, _ in iter_extra_fields(self.extra))

    def agrees_with(self, method: int, crc32: int, packed_size: int, size: int) -> bool:
        """Return whether the directory may say this of the same member.

        A member that was written as a stream has checksum and sizes behind it, and zeros here.
        """
        pairs = ((self.crc32, crc32), (self.packed_size, packed_size), (self.size, size))
        return self.method == method and all(here == there or (self.is_stream and not here) for here, there in pairs)


def read_local_header(read_at: ReadAt, offset: int) -> LocalHeader | None:
    """Read the header at ``offset`` of an archive; return none when there is none."""
    data = read_at(_HEADER.size, offset)
    if len(data) < _HEADER.size or not data.startswith(b"PK\3\4"):
        return None
    _, version, flags, method, _, _, crc32, packed_size, size, name_size, extra_size = _HEADER.unpack(data)
    narrow = size, packed_size
    rest = read_at(name_size + extra_size, offset + _HEADER.size)
    name, extra = rest[:name_size], rest[name_size:]
    if _IN_EXTRA in (packed_size, size):
        large = _find_zip64(extra)
        size, packed_size = (next(large, 0) if value == _IN_EXTRA else value for value in (size, packed_size))
    content = offset + _HEADER.size + name_size + extra_size
    return LocalHeader(name, version, flags, method, crc32, packed_size, size, content, extra, narrow)


def _find_zip64(extra: bytes) -> Iterator[int]:
    """Yield the large sizes of a member: the unpacked one first, each only where the header has no room for it."""
    data = next((data for kind, data in iter_extra_fields(extra) if kind == ZIP64), b"")
    return (value for (value,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]))
