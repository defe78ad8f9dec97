"""Reads the dynamic section and its string table (gABI, "Dynamic Linking"), using only the program headers."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import takewhile
from struct import Struct
from typing import Final

import msgspec

from rocwheel.binary.elf.header import ET_EXEC, PT_DYNAMIC, PT_INTERP, ElfBytes, ElfError, Segment
from rocwheel.binary.elf.mapping import find_offset, find_table, read_memory
from rocwheel.core.messages import count

DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH = 0, 1, 5, 6, 10, 14, 15, 29
DT_HASH, DT_GNU_HASH, DT_VERSYM = 4, 0x6FFFFEF5, 0x6FFFFFF0
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DT_FLAGS_1, DF_1_PIE = 0x6FFFFFFB, 0x08000000
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF

ENTRY_LAYOUT: Final = Struct("<QQ")
_MOST_ENTRIES = 1 << 13


class RunpathTag(enum.Enum):
    """The two kinds of run path. Loaders search ``LD_LIBRARY_PATH`` after an RPATH and before a RUNPATH."""

    RPATH = "rpath"
    """Searched first, including for the dependencies of the needed libraries; ignored if there is a RUNPATH."""
    RUNPATH = "runpath"
    """Searched after ``LD_LIBRARY_PATH``, and only for the file's own dependencies."""


RUN_PATH_TAGS: Final = {RunpathTag.RPATH: DT_RPATH, RunpathTag.RUNPATH: DT_RUNPATH}
"""The dynamic section tags for the two kinds of run path."""


def counting_tag(rpath: object, runpath: object) -> RunpathTag | None:
    """Return the effective tag for these values (RUNPATH overrides RPATH), or `None` if both values are `None`."""
    if runpath is not None:
        return RunpathTag.RUNPATH
    return None if rpath is None else RunpathTag.RPATH


class DynamicTable(msgspec.Struct, frozen=True):
    """The dynamic section: its position, its capacity in entries, and the entries before the final ``DT_NULL``."""

    offset: int
    address: int
    capacity: int
    entries: tuple[tuple[int, int], ...]

    @property
    def is_pie(self) -> bool:
        """Whether the linker marked the file as a position-independent executable (``DF_1_PIE``)."""
        return bool((self.value(DT_FLAGS_1) or 0) & DF_1_PIE)

    def value(self, tag: int) -> int | None:
        """Return the last value of ``tag``, which is the value that loaders use, or `None` if the tag is absent."""
        for other, value in reversed(self.entries):
            if other == tag:
                return value
        return None

    def values(self, tag: int) -> list[int]:
        """Return the values of all entries with ``tag``, in order."""
        return [value for other, value in self.entries if other == tag]


class StringTable(msgspec.Struct, frozen=True):
    """The position of the dynamic string table in the file and in memory, and its size in bytes."""

    offset: int
    address: int
    size: int

    def string(self, source: ElfBytes, offset: int, what: str) -> str:
        """Return the UTF-8 string at ``offset`` in the table."""
        return source.string(self._start(source, offset, what), self.offset + self.size, what)

    def path(self, source: ElfBytes, offset: int, what: str) -> str:
        """Return the path at ``offset``, which may contain any bytes.

        Bytes that aren't UTF-8 become surrogates, as in Python's file names (PEP 383).
        """
        text = source.string_bytes(self._start(source, offset, what), self.offset + self.size, what)
        return text.decode(errors="surrogateescape")

    def _start(self, source: ElfBytes, offset: int, what: str) -> int:
        if offset >= self.size:
            raise ElfError(source.name, f"{what} begins at {offset:#x} in a string table of {self.size:#x} bytes")
        return self.offset + offset


class DynamicFile(msgspec.Struct, frozen=True):
    """A dynamically linked file: its bytes, and the structures that locate its symbols and versions."""

    source: ElfBytes
    segments: Sequence[Segment]
    table: DynamicTable
    strings: StringTable

    def string(self, offset: int, what: str) -> str:
        """Return the UTF-8 string at ``offset`` in the string table; ``what`` describes it in messages."""
        return self.strings.string(self.source, offset, what)


def read_dynamic(source: ElfBytes, segments: Sequence[Segment]) -> DynamicTable | None:
    """Return the dynamic section, or `None` if the file doesn't have one (static executables, object files).

    Raises `ElfError` for a section that is outside the file or has no end, and for a second section if loaders would
    use it. Also raises it if the section in memory, which loaders use, isn't the section in the file.
    """
    segment = _dynamic_segment(source, segments)
    if segment is None:
        return None
    capacity = segment.file_size // ENTRY_LAYOUT.size
    size = min(capacity, _MOST_ENTRIES) * ENTRY_LAYOUT.size
    source.require(segment.offset, segment.file_size, "the dynamic section")
    entries: list[tuple[int, int]] = []
    for tag, value in ENTRY_LAYOUT.iter_unpack(source.read(segment.offset, size, "the dynamic section")):
        if tag == DT_NULL:
            return DynamicTable(segment.offset, segment.address, capacity, tuple(entries))
        entries.append((tag, value))
    raise ElfError(
        source.name, f"a dynamic section that doesn't end within its first {count(len(entries), 'entry', 'entries')}"
    )


def _dynamic_segment(source: ElfBytes, segments: Sequence[Segment]) -> Segment | None:
    found = [segment for segment in segments if segment.type == PT_DYNAMIC]
    if len(found) > 1:
        raise ElfError(source.name, f"{len(found)} dynamic sections", expected="one, as in every linked file")
    if not found or not found[0].file_size:
        return found[0] if found else None
    [segment] = found
    offset, _ = find_offset(source, segments, segment.address, "the dynamic section")
    if offset != segment.offset:
        place = f"both {segment.offset:#x} and {offset:#x} in the file"
        raise ElfError(source.name, f"a dynamic section that claims to be at {place}")
    return segment


def names_tables(source: ElfBytes, segments: Sequence[Segment]) -> bool:
    """Return whether loaders find a dynamic section with string and symbol tables, and therefore load the file.

    Loaders use only the program headers, and read up to ``DT_NULL``, regardless of the section's size. A file with
    several dynamic sections is considered loadable, even though linkers don't produce such files.
    """
    found = [segment.address for segment in segments if segment.type == PT_DYNAMIC and segment.file_size]
    return len(found) > 1 or any({DT_STRTAB, DT_SYMTAB} <= _loaded_tags(source, segments, at) for at in found)


def _loaded_tags(source: ElfBytes, segments: Sequence[Segment], address: int) -> set[int]:
    """Return the tags of a dynamic section in memory, or an empty set if the section isn't loaded."""
    data = read_memory(source, segments, address, _MOST_ENTRIES * ENTRY_LAYOUT.size)
    whole = data[: len(data) // ENTRY_LAYOUT.size * ENTRY_LAYOUT.size]
    return {tag for tag, _ in takewhile(lambda entry: entry[0] != DT_NULL, ENTRY_LAYOUT.iter_unpack(whole))}


def read_string_table(source: ElfBytes, segments: Sequence[Segment], dynamic: DynamicTable) -> StringTable:
    """Return the dynamic string table; raise `ElfError` if the table is missing or isn't completely loaded."""
    address, size = dynamic.value(DT_STRTAB), dynamic.value(DT_STRSZ)
    if address is None or size is None:
        raise ElfError(source.name, "a dynamic section without a string table (DT_STRTAB, DT_STRSZ)")
    offset, room = find_table(source, segments, address, size, "the dynamic string table")
    if size > room:
        raise ElfError(source.name, f"a dynamic string table of {size:#x} bytes, of which only {room:#x} are loaded")
    return StringTable(offset, address, size)


def is_program_only(file_type: int, segments: Sequence[Segment], dynamic: DynamicTable | None) -> bool:
    """Return whether a file is only a program, and not also a library.

    Some libraries (``libc.so.6``, ``libQt6Core.so.6``) have an interpreter and a SONAME, so the kernel can also start
    them. ``file_type`` is ``e_type``.
    """
    if file_type == ET_EXEC or (dynamic is not None and dynamic.is_pie):
        return True
    has_soname = dynamic is not None and dynamic.value(DT_SONAME) is not None
    return not has_soname and any(segment.type == PT_INTERP for segment in segments)


def read_dynamic_file(source: ElfBytes, segments: Sequence[Segment]) -> DynamicFile | None:
    """Return the tables of a dynamically linked file, or `None` for other files.

    Raises the same errors as `read_dynamic` and `read_string_table`.
    """
    table = read_dynamic(source, segments)
    if table is None:
        return None
    return DynamicFile(source, segments, table, read_string_table(source, segments, table))
