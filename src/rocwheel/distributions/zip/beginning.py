"""How much of each member is read at once: its own header, and the first of its packed bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocwheel.distributions.zip.local_header import MOST_OF_HEADER

if TYPE_CHECKING:
    import zipfile

__all__ = ["HEAD_PIECE", "beginning"]

HEAD_PIECE: Final = 512
"""Packed bytes that nearly always hold the first ones that tell what a member is (`rocwheel.binary.kind.HEAD_SIZE`)."""


def beginning(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range of what is read of every member."""
    size = MOST_OF_HEADER + len(info.orig_filename.encode(errors="replace")) + min(info.compress_size, HEAD_PIECE)
    return info.header_offset, info.header_offset + size
