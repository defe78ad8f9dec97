"""Taking the free space of ``.hip_fatbin`` out of a shared library, once its bundles have become smaller.

Bundles move together at the section's start, the pages behind them leave the file, and no other address changes:

* the segment around the section becomes two, of which the first ends behind the bundles and is zero-filled in memory up
  to the second;
* the table of program headers, one longer, lies behind the bundles;
* relocations give the wrappers the new addresses of their bundles;
* what comes later in the file moves up by whole pages.
"""

from __future__ import annotations

import os
import struct
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.device_error import DeviceCodeError, Place
from rocwheel.binary.elf_bytes import ElfBytes
from rocwheel.binary.elf_header import ET_DYN, PT_INTERP, PT_LOAD, Header, Segment, read_header, read_segments
from rocwheel.binary.elf_sections import SECTION_LAYOUT, Section, read_section_table
from rocwheel.binary.fat_binary import FatBinary, read_fat_binary
from rocwheel.binary.file_patch import Replacement, write_patched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.fat_binary import Wrapper

__all__ = ["FatTrim", "plan_fat_trim", "write_trimmed"]

_PAGE = 4096
_PT_PHDR = 6
_SEGMENT_SIZE = 56
_OFFSETS_FIELD = 0x20
_COUNT_FIELD = 0x38
_POINTER_OFFSET = 8


class FatTrim(msgspec.Struct, frozen=True):
    """What to do to a library; offsets are those in the old file.

    ``moves`` are the bundles: where each goes, where it comes from, and its size. ``edits`` are other new bytes. The
    range from ``cut_start`` to ``cut_stop`` is left out.
    """

    moves: tuple[tuple[int, int, int], ...]
    edits: tuple[tuple[int, bytes], ...]
    cut_start: int
    cut_stop: int

    @property
    def saved(self) -> int:
        """By how many bytes the file becomes smaller."""
        return self.cut_stop - self.cut_start


def plan_fat_trim(data: memoryview, *, name: str) -> FatTrim | None:
    """Plan to trim the shared library ``data``; none when there is no page to gain.

    Raises `DeviceCodeError` for programs and object files, and when a symbol, not an address, tells where a bundle is;
    `ElfError` for damaged files.
    """
    fat = read_fat_binary(data, name=name)
    if fat is None or fat.is_kpacked:
        raise DeviceCodeError(Place(name), "no fat binary", expected="a shared library with .hip_fatbin")
    source = ElfBytes(data, name)
    header = read_header(source)
    segments = read_segments(source, header)
    if header.type != ET_DYN or any(segment.type == PT_INTERP for segment in segments):
        raise DeviceCodeError(
            Place(name),
            "a program or an object file",
            expected="a shared library",
            remedy="The free space can't be taken out of it; in a wheel it costs next to nothing.",
        )
    return _Layout(data, fat, header, segments, read_section_table(source, header)).plan()


class _Layout:
    """Where things go; all offsets are in bytes of the old file unless they are called new."""

    def __init__(
        self,
        data: memoryview,
        fat: FatBinary,
        header: Header,
        segments: tuple[Segment, ...],
        sections: tuple[Section, ...],
    ) -> None:
        self.data, self.fat, self.header, self.segments, self.sections = data, fat, header, segments, sections
        self.moves = tuple(self._pack())
        self.packed_end = self.moves[-1][0] + self.moves[-1][2] if self.moves else fat.section.offset
        self.table = -(-self.packed_end // 8) * 8
        self.cut_start = -(-(self.table + (len(segments) + 1) * _SEGMENT_SIZE) // _PAGE) * _PAGE
        section_end = fat.section.offset + fat.section.size
        unit = max([_PAGE, *(segment.alignment for segment in segments if segment.type == PT_LOAD)])
        self.cut_stop = self.cut_start + max(section_end - self.cut_start, 0) // unit * unit
        self.shift = self.cut_stop - self.cut_start

    def _pack(self) -> Iterator[tuple[int, int, int]]:
        position = base = self.fat.section.offset
        for bundle in self.fat.iter_bundles(self.data):
            yield position, base + bundle.start, bundle.size
            position += -(-bundle.size // _PAGE) * _PAGE

    def plan(self) -> FatTrim | None:
        if self.shift <= 0 or not self.moves:
            return None
        edits = sorted([*self._pointers(), *self._headers()])
        return FatTrim(self.moves, tuple(edits), self.cut_start, self.cut_stop)

    def _pointers(self) -> Iterator[tuple[int, bytes]]:
        to_address = self.fat.section.address - self.fat.section.offset
        new_addresses = {old + to_address: new + to_address for new, old, _ in self.moves}
        for wrapper in self.fat.wrappers:
            old = wrapper.pointer.target
            new = new_addresses[old]
            if new == old:
                continue
            yield from self._redirect(wrapper, new)

    def _redirect(self, wrapper: Wrapper, new: int) -> Iterator[tuple[int, bytes]]:
        if wrapper.pointer.stored_at is None:
            raise DeviceCodeError(
                Place(self.fat.name, wrapper.offset),
                "a wrapper whose relocation names its bundle by a symbol",
                expected="one by an address, as linkers make for shared libraries",
            )
        content = new.to_bytes(8, "little")
        yield wrapper.pointer.stored_at, content
        in_place = wrapper.offset + _POINTER_OFFSET
        if in_place != wrapper.pointer.stored_at and any(self.data[in_place : in_place + 8]):
            yield in_place, content

    def _headers(self) -> Iterator[tuple[int, bytes]]:
        table = b"".join(segment.pack() for segment in self._new_segments())
        padding = bytes(self.table - self.packed_end)
        yield self.packed_end, (padding + table).ljust(self.cut_start - self.packed_end, b"\0")
        offsets = struct.pack("<QQ", self.table, self._moved(self.header.sections_offset))
        yield _OFFSETS_FIELD, offsets
        yield _COUNT_FIELD, struct.pack("<H", len(self.segments) + 1)
        for number, section in enumerate(self.sections):
            new = msgspec.structs.replace(section, offset=self._moved(section.offset))
            if section == self.fat.section:
                new = msgspec.structs.replace(section, size=self.packed_end - section.offset)
            if new != section:
                yield self.header.sections_offset + number * SECTION_LAYOUT.size, new.pack()

    def _moved(self, offset: int) -> int:
        return offset - self.shift if offset >= self.cut_stop else offset

    def _new_segments(self) -> Iterator[Segment]:
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.offset <= self.fat.section.offset < segment.end:
                yield from self._split(segment)
            elif segment.type == _PT_PHDR:
                address = self.fat.section.address - self.fat.section.offset + self.table
                yield segment.at(self.table, address, (len(self.segments) + 1) * _SEGMENT_SIZE)
            else:
                yield msgspec.structs.replace(segment, offset=self._moved(segment.offset))

    def _split(self, segment: Segment) -> Iterator[Segment]:
        before, until = self.cut_start - segment.offset, self.cut_stop - segment.offset
        yield msgspec.structs.replace(segment, file_size=before, memory_size=until)
        yield msgspec.structs.replace(
            segment,
            offset=self.cut_start,
            address=segment.address + until,
            physical_address=segment.physical_address + until,
            file_size=segment.file_size - until,
            memory_size=segment.memory_size - until,
        )


def write_trimmed(file: IO[bytes], data: memoryview, trim: FatTrim) -> None:
    """Write the trimmed library to ``file``; ``data`` is the whole old one."""
    edits = [Replacement(offset, offset + len(new), new) for offset, new in trim.edits]
    head = [edit for edit in edits if edit.start < trim.cut_start]
    tail = [edit for edit in edits if edit.start >= trim.cut_stop]
    stops = [*(new for new, _, _ in trim.moves[1:]), trim.moves[-1][0] + trim.moves[-1][2]]
    write_patched(file, data[: trim.cut_start], _merge(head, trim.moves, stops, data))
    file.truncate(trim.cut_start)
    file.seek(0, os.SEEK_END)
    rest = (Replacement(edit.start - trim.cut_stop, edit.stop - trim.cut_stop, edit.data) for edit in tail)
    write_patched(file, data[trim.cut_stop :], rest)


def _merge(
    edits: list[Replacement], moves: tuple[tuple[int, int, int], ...], stops: list[int], data: memoryview
) -> Iterator[Replacement]:
    """Give edits and bundles in the order of the file, one bundle in memory at a time."""
    yield from (edit for edit in edits if edit.start < moves[0][0])
    for (new, old, size), stop in zip(moves, stops, strict=True):
        yield Replacement(new, stop, bytes(data[old : old + size]))
    yield from (edit for edit in edits if edit.start >= stops[-1])
