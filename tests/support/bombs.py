"""Small files that ask for gigabytes of memory or disk."""

from __future__ import annotations

import lzma
import tarfile
import zlib

__all__ = ["tar_block", "xz_of_gigabytes"]


def xz_of_gigabytes() -> bytes:
    """Return a stream of xz whose decoder would take 1.5 GiB for its dictionary."""
    # The size of the dictionary is the one byte of properties in the filter's flags (xz file format 1.2, 5.3.1).
    packed = bytearray(lzma.compress(b"a" * 5000, preset=6))
    packed[packed.index(b"\x21\x01") + 2] = 37
    start = 12
    size = (packed[start] + 1) * 4
    packed[start + size - 4 : start + size] = zlib.crc32(packed[start : start + size - 4]).to_bytes(4, "little")
    return bytes(packed)


def tar_block(kind: bytes, data: bytes = b"", *, name: str = "n", size: int | None = None) -> bytes:
    """Return a member of a tar: its header, which may lie about the size, and its content."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data) if size is None else size
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE)
