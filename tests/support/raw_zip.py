"""ZIP archives written field by field, so that each of them can lie."""

from __future__ import annotations

import struct
import zlib

import msgspec

__all__ = ["RawMember", "deflated", "raw_zip", "with_large_record"]


class RawMember(msgspec.Struct, frozen=True):
    """A member, whose entry in the directory says the truth of ``packed`` and ``content``.

    A streamed one has zeros in its own header; what follows it is part of ``behind``, not of its packed bytes.
    """

    name: bytes
    content: bytes = b""
    packed: bytes | None = None
    method: int = 0
    flags: int = 0
    directory_flags: int | None = None
    extra: bytes = b""
    directory_extra: bytes = b""
    behind: bytes | None = None

    def local(self) -> bytes:
        """Return its own header, its packed bytes, and what stands behind them."""
        sizes = (0, 0, 0) if self.flags & 8 else self.sizes()
        lengths = (len(self.name), len(self.extra))
        header = struct.pack("<4s5H3I2H", b"PK\3\4", 20, self.flags, self.method, 0, 0x21, *sizes, *lengths)
        behind = self.descriptor() if self.behind is None and self.flags & 8 else self.behind or b""
        return header + self.name + self.extra + self.in_archive() + behind

    def descriptor(self, layout: str = "<4s3I") -> bytes:
        """Return the descriptor of a streamed member."""
        return struct.pack(layout, b"PK\7\10", *self.sizes())

    def entry(self, offset: int) -> bytes:
        """Return its entry in the directory."""
        flags = self.flags if self.directory_flags is None else self.directory_flags
        fields = (0x314, 20, flags, self.method, 0, 0x21, *self.sizes())
        lengths = (len(self.name), len(self.directory_extra), 0, 0, 0)
        return (
            struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields, *lengths, 0o100644 << 16, offset)
            + self.name
            + self.directory_extra
        )

    def in_archive(self) -> bytes:
        """Return its packed bytes."""
        return self.content if self.packed is None else self.packed

    def sizes(self) -> tuple[int, int, int]:
        """Return checksum, packed size and size."""
        return zlib.crc32(self.content), len(self.in_archive()), len(self.content)


def deflated(content: bytes, level: int = 9) -> bytes:
    """Return bytes as deflate packs them."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def raw_zip(*members: RawMember) -> bytes:
    """Return an archive of these members."""
    data, directory = b"", b""
    for member in members:
        directory += member.entry(len(data))
        data += member.local()
    number = len(members)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, number, number, len(directory), len(data), 0)
    return data + directory + end


def with_large_record(data: bytes) -> bytes:
    """Return an archive with a record for large archives, which says the same as its last record."""
    end = data.rindex(b"PK\5\6")
    _, *numbers, length, start, _ = struct.unpack_from("<4s4H2IH", data, end)
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, *numbers, length, start)
    return data[:end] + record + struct.pack("<4sIQI", b"PK\6\7", 0, end, 1) + data[end:]
