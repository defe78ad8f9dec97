"""Bounded reading of an ELF file's bytes, as laid out by the System V ABI (gABI, chapters 4 and 5)."""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.file_view import Data, FileView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from struct import Struct


__all__ = ["Buffer", "ElfBytes", "ElfError", "viewing"]

Buffer: TypeAlias = bytes | bytearray | mmap.mmap | Data

_FIRST_STRING_CHUNK = 256
_LONGEST_STRING = 1 << 16
_SEARCH_CHUNK = 1 << 20


@contextmanager
def viewing(data: Buffer) -> Iterator[Data]:
    """Yield ``data`` for `ElfBytes`; what it is in memory is free to be closed or resized after the block."""
    if isinstance(data, FileView):
        yield data
        return
    with memoryview(data) as view:
        yield view


class ElfError(InputError):
    """An ELF file that can't be used: damaged, of an unsupported class, or without what the work needs."""


class ElfBytes:
    """The bytes of one ELF file; each access is checked against the file's size and copies what it returns.

    No view of the bytes is kept or given away, so that the memory map below can be closed at any time.
    """

    __slots__ = ("_view", "name", "size")

    def __init__(self, view: Data, name: str) -> None:
        self._view = view
        self.name = name
        self.size = len(view)

    def require(self, offset: int, size: int, what: str) -> None:
        """Raise `ElfError` unless ``size`` bytes at ``offset`` lie inside the file; ``what`` names them."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ElfError(
                self.name,
                f"{what} would lie at {offset:#x} to {offset + size:#x}, but the file ends at {self.size:#x}",
                expected="a whole ELF file",
                remedy="It is truncated or damaged: copy or build it again.",
            )

    def unpack(self, layout: Struct, offset: int, what: str) -> tuple[Any, ...]:
        """Return the fields of one structure."""
        self.require(offset, layout.size, what)
        return layout.unpack(bytes(self._view[offset : offset + layout.size]))

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return a copy of a range."""
        self.require(offset, size, what)
        return bytes(self._view[offset : offset + size])

    def find(self, text: bytes, offset: int, size: int, what: str) -> Iterator[int]:
        """Yield the offset of each place in a range where ``text`` is."""
        end = offset + size
        for start in range(offset, end, _SEARCH_CHUNK):
            chunk = self.read(start, min(_SEARCH_CHUNK + len(text) - 1, end - start), what)
            position = chunk.find(text)
            while position >= 0:
                yield start + position
                position = chunk.find(text, position + 1)

    def string(self, offset: int, end: int, what: str) -> str:
        """Return the UTF-8 string from ``offset`` to its NUL byte, which must come before ``end``."""
        text = self.string_bytes(offset, end, what)
        try:
            return text.decode()
        except UnicodeDecodeError as e:
            raise ElfError(self.name, f"{what} is {text!r}", expected="UTF-8 text") from e

    def string_bytes(self, offset: int, end: int, what: str) -> bytes:
        """Return the bytes from ``offset`` to the NUL byte, which must come before ``end``."""
        for size in (_FIRST_STRING_CHUNK, _LONGEST_STRING):
            chunk = self.read(offset, min(size, end - offset), what)
            length = chunk.find(b"\0")
            if length >= 0:
                return chunk[:length]
        raise ElfError(
            self.name, f"{what} has no end inside its string table, or is longer than {_LONGEST_STRING} bytes"
        )
