"""Writes ZIP archives from members that are already packed (APPNOTE.TXT 6.3, with ZIP64).

The standard library's ``zipfile`` packs on the writing thread and doesn't accept packed data, so it can't use several
cores.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.core.writing import AtomicFile

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_EXTRA64_ID = 1
_UTF8_FLAG = 0x800
_MADE_BY_UNIX = 3 << 8
_VERSION, _VERSION64 = 20, 45
_MAX32 = 0xFFFFFFFF
_MAX16 = 0xFFFF
_S_IFREG = 0o100000
# A member this large may exceed 4 GiB with deflate's framing. Its local header reserves space for ZIP64 fields.
_ZIP64_FROM = 0xFFF00000


class ZipTime(msgspec.Struct, frozen=True):
    """A time in ZIP's format: an MS-DOS date and time with a resolution of two seconds, from 1980 to 2107."""

    date: int = (0 << 9) | (1 << 5) | 1
    time: int = 0

    @classmethod
    def from_fields(cls, year: int, month: int, day: int, hour: int, minute: int, second: int) -> ZipTime:
        """Return the time. A year outside ZIP's range is clamped."""
        if year < 1980:
            return cls()
        year = min(year, 2107)
        return cls((year - 1980) << 9 | month << 5 | day, hour << 11 | minute << 5 | second // 2)


class ZipEntry(msgspec.Struct, frozen=True):
    """A member's entry in the central directory; sizes are in bytes."""

    name: str
    mode: int
    method: int
    offset: int
    size: int
    is_zip64: bool
    """Whether the local header has 64-bit sizes."""
    packed_size: int = 0
    crc32: int = 0


class ZipWriter:
    """Writes members sequentially to a seekable file; `close` writes the central directory."""

    def __init__(self, target: AtomicFile, moment: ZipTime) -> None:
        self._target = target
        self._moment = moment
        self._entries: list[ZipEntry] = []
        self._begun: tuple[ZipEntry, int] | None = None
        """The member that is being written, and the offset of its packed bytes."""

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member of at most ``size`` unpacked bytes.

        `write` appends the member's packed bytes, and `end` finishes the member.
        """
        entry = ZipEntry(name, mode, method, self._target.tell(), size, is_zip64=size >= _ZIP64_FROM)
        self._target.write(self._local_header(entry))
        self._begun = entry, self._target.tell()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append packed bytes to the member."""
        self._target.write(data)

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._target.tell()

    def end(self, size: int, crc32: int) -> None:
        """Finish the member: write the sizes and the CRC-32 of the unpacked bytes into its local header."""
        assert self._begun is not None, "call `begin` first"
        begun, start = self._begun
        entry = msgspec.structs.replace(begun, size=size, packed_size=self._target.tell() - start, crc32=crc32)
        self._target.overwrite(entry.offset, self._local_header(entry))
        self._entries.append(entry)

    def close(self) -> None:
        """Write the central directory and its end records."""
        start = self._target.tell()
        for entry in self._entries:
            self._target.write(self._central_header(entry))
        size = self._target.tell() - start
        count = len(self._entries)
        if count > _MAX16 or start > _MAX32 or size > _MAX32:
            self._write_end64(count, size, start)
        fields = (min(count, _MAX16), min(count, _MAX16), min(size, _MAX32), min(start, _MAX32), 0)
        self._target.write(_END.pack(b"PK\5\6", 0, 0, *fields))

    def _write_end64(self, count: int, size: int, start: int) -> None:
        end64 = self._target.tell()
        fields = (_VERSION64 | _MADE_BY_UNIX, _VERSION64, 0, 0, count, count, size, start)
        self._target.write(_END64.pack(b"PK\6\6", _END64.size - 12, *fields))
        self._target.write(_LOCATOR64.pack(b"PK\6\7", 0, end64, 1))

    def _local_header(self, entry: ZipEntry) -> bytes:
        name = entry.name.encode()
        sizes, extra = (entry.packed_size, entry.size), b""
        if entry.is_zip64:
            extra = struct.pack("<2H2Q", _EXTRA64_ID, 16, entry.size, entry.packed_size)
            sizes = (_MAX32, _MAX32)
        version = _VERSION64 if entry.is_zip64 else _VERSION
        moment = (self._moment.time, self._moment.date)
        fields = (version, _UTF8_FLAG, entry.method, *moment, entry.crc32, *sizes, len(name), len(extra))
        return _LOCAL.pack(b"PK\3\4", *fields) + name + extra

    def _central_header(self, entry: ZipEntry) -> bytes:
        name = entry.name.encode()
        wide = [n for n in (entry.size, entry.packed_size, entry.offset) if n >= _MAX32]
        extra = struct.pack(f"<2H{len(wide)}Q", _EXTRA64_ID, 8 * len(wide), *wide) if wide else b""
        version = _VERSION64 if wide or entry.is_zip64 else _VERSION
        narrow = (min(entry.packed_size, _MAX32), min(entry.size, _MAX32))
        moment = (self._moment.time, self._moment.date)
        fields = (version | _MADE_BY_UNIX, version, _UTF8_FLAG, entry.method, *moment, entry.crc32, *narrow)
        attributes = (_S_IFREG | entry.mode) << 16
        rest = (len(name), len(extra), 0, 0, 0, attributes, min(entry.offset, _MAX32))
        return _CENTRAL.pack(b"PK\1\2", *fields, *rest) + name + extra
