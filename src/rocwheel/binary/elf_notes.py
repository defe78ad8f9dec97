"""The notes of an ELF file (gABI, "Note Section"), of which the build id is read."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf_header import PT_NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.elf_bytes import ElfBytes
    from rocwheel.binary.elf_header import Segment

__all__ = ["read_build_id"]

_NOTE: Final = Struct("<III")
_BUILD_ID = 3
_MOST_NOTES = 1 << 10
_LONGEST_BUILD_ID = 64


def read_build_id(source: ElfBytes, segments: Iterable[Segment]) -> str | None:
    """Return the build id (``NT_GNU_BUILD_ID``) in hexadecimal, or none."""
    for segment in segments:
        if segment.type == PT_NOTE:
            source.require(segment.offset, segment.file_size, "the notes")
            for name, kind, offset, size in _notes(source, segment):
                if kind == _BUILD_ID and name == b"GNU\0" and size <= _LONGEST_BUILD_ID:
                    return source.read(offset, size, "the build id").hex()
    return None


def _notes(source: ElfBytes, segment: Segment) -> Iterator[tuple[bytes, int, int, int]]:
    """Give name, kind, offset and size of each note of a segment, up to the first that doesn't fit in it."""
    alignment = 8 if segment.alignment == 8 else 4
    offset = segment.offset
    for _ in range(_MOST_NOTES):
        if offset + _NOTE.size > segment.end:
            return
        name_size, size, kind = source.unpack(_NOTE, offset, "a note")
        content = offset + _align(_NOTE.size + name_size, alignment)
        if content + size > segment.end:
            return
        yield source.read(offset + _NOTE.size, min(name_size, 4), "a note's name"), kind, content, size
        offset = content + _align(size, alignment)


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
