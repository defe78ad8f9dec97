"""The notes of an ELF file (gABI, "Note Section").

A note is u32 size of its name, u32 size of its content, u32 kind, then name and content, each padded to 4 or 8 bytes.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.header import PT_NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.elf.bytes import ElfBytes
    from rocwheel.binary.elf.header import Segment

__all__ = ["ElfNote", "iter_notes", "read_build_id"]

_NOTE: Final = Struct("<III")
_BUILD_ID = 3
_MOST_NOTES = 1 << 10
"""Notes of a file: thousands of segments may be the same notes."""
_LONGEST_NAME = 64
_LONGEST_BUILD_ID = 64


class ElfNote(msgspec.Struct, frozen=True):
    """A note: its name with the NUL byte, cut off after 64 bytes, its kind, and where its content is in the file."""

    name: bytes
    kind: int
    offset: int
    size: int


def iter_notes(source: ElfBytes, start: int, stop: int, *, alignment: int = 4) -> Iterator[ElfNote]:
    """Yield each note between two file offsets; raises `ElfError` for one that runs past the end."""
    source.require(start, stop - start, "the notes")
    offset = start
    while offset + _NOTE.size <= stop:
        name_size, size, kind = source.unpack(_NOTE, offset, "a note")
        content = offset + _align(_NOTE.size + name_size, alignment)
        if content + size > stop:
            raise ElfError(source.name, f"a note at byte {offset} that runs past its segment")
        name = source.read(offset + _NOTE.size, min(name_size, _LONGEST_NAME), "a note's name")
        yield ElfNote(name, kind, content, size)
        offset = content + _align(size, alignment)


def read_build_id(source: ElfBytes, segments: Iterable[Segment]) -> str | None:
    """Return the build id (``NT_GNU_BUILD_ID``) in hexadecimal, or none among the first 1024 notes.

    Notes of a segment after a damaged one aren't read.
    """
    number = 0
    for segment in segments:
        if segment.type == PT_NOTE:
            source.require(segment.offset, segment.file_size, "the notes")
            with suppress(ElfError):
                for note in islice(_notes(source, segment), _MOST_NOTES - number):
                    number += 1
                    if note.kind == _BUILD_ID and note.name == b"GNU\0" and note.size <= _LONGEST_BUILD_ID:
                        return source.read(note.offset, note.size, "the build id").hex()
    return None


def _notes(source: ElfBytes, segment: Segment) -> Iterator[ElfNote]:
    alignment = 8 if segment.alignment == 8 else 4
    return iter_notes(source, segment.offset, segment.end, alignment=alignment)


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
