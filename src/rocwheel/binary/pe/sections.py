"""Sections of a Portable Executable, and where what is loaded stands in the file ("PE Format", "Section Table")."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from heapq import heappop, heappush
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rocwheel.binary.pe.bytes import PeError
from rocwheel.binary.pe.header import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.pe.bytes import PeBytes
    from rocwheel.binary.pe.header import PeHeader

__all__ = ["SECTION_LAYOUT", "Image", "PeSection", "open_image", "read_sections", "section_name"]

SECTION_LAYOUT: Final = Struct("<8sIIIIIIHHI")
_SECTOR = 512
"""The loader rounds the place of a section in the file down to this many bytes."""
_NAME_DIGITS = 7
_LONGEST_NAME = 1 << 12


class PeSection(msgspec.Struct, frozen=True):
    """A section: sizes in bytes, the address relative to the image base, the offset in the file."""

    name: str
    """Such as ``.text``; longer names of GNU tools stand in the string table. Bytes that are not ASCII are escaped."""
    address: int
    memory_size: int
    offset: int
    file_size: int
    """Bytes in the file, rounded up to the file alignment; the rest of the memory is zero-filled."""
    traits: int
    """``Characteristics``."""

    @property
    def end(self) -> int:
        """File offset after its last byte."""
        return self.offset + self.file_size

    @property
    def loaded_size(self) -> int:
        """Bytes of the file that are loaded; behind them, it is filled up to the file alignment."""
        return min(self.memory_size or self.file_size, self.file_size)

    @property
    def memory_end(self) -> int:
        """Address after its last byte in memory."""
        return self.address + max(self.memory_size, 1)


class Image:
    """A file as the loader places it in memory: reads by addresses relative to the image base."""

    def __init__(self, source: PeBytes, header: PeHeader, sections: tuple[PeSection, ...]) -> None:
        self.source = source
        self.header = header
        self.sections = sections

    def offset_of(self, address: int, what: str) -> tuple[int, int]:
        """Return where an address stands in the file, and where the bytes end that are loaded with it.

        Where sections overlap, the first one in the table counts. Raises `PeError` where nothing of the file is loaded
        there.
        """
        starts, holders = self._places
        at = bisect_right(starts, address) - 1
        if section := holders[at] if at >= 0 else None:
            offset = section.offset - section.offset % _SECTOR
            return offset + address - section.address, offset + section.file_size
        if address < min(self.header.headers_size, self.source.size):
            return address, self.header.headers_size
        raise PeError(
            self.source.name,
            f"{what} would lie at the address {address:#x}, where no section has bytes of the file",
            expected=self.source.whole,
            remedy="It is truncated or damaged: copy or build it again.",
        )

    @cached_property
    def _places(self) -> tuple[list[int], list[PeSection | None]]:
        """Addresses where another section begins to count, in rising order, and which one; none in gaps."""
        places = list(_first_sections(self.sections))
        return [start for start, _ in places], [section for _, section in places]

    def unpack(self, layout: Struct, address: int, what: str) -> tuple[Any, ...]:
        """Return the fields of one structure."""
        return layout.unpack(self.read(address, layout.size, what))

    def read(self, address: int, size: int, what: str) -> bytes:
        """Return a copy of a range; raise `PeError` where it doesn't lie in one section."""
        offset, end = self.offset_of(address, what)
        if offset + size > end:
            raise PeError(
                self.source.name, f"{what} would have {size} bytes at {address:#x}, but its section has {end - offset}"
            )
        return self.source.read(offset, size, what)

    def string(self, address: int, what: str) -> str:
        """Return the ASCII text from an address to its NUL byte; raise `PeError` for other text."""
        offset, end = self.offset_of(address, what)
        text = self.source.string_bytes(offset, min(end, self.source.size), what)
        if not text.isascii():
            raise PeError(self.source.name, f"{what} is {text!r}", expected="ASCII text")
        return text.decode("ascii")


def _first_sections(sections: Sequence[PeSection]) -> Iterator[tuple[int, PeSection | None]]:
    """Yield each address from which another section is the first one with bytes of the file there, and that section.

    Takes n log n steps: a header may announce 65535 sections, and tables of a million addresses.
    """
    spans = [(one.address, one.address + one.file_size, number) for number, one in enumerate(sections) if one.file_size]
    waiting = sorted(spans, reverse=True)
    open_spans: list[tuple[int, int]] = []
    for address in sorted({edge for start, stop, _ in spans for edge in (start, stop)}):
        while waiting and waiting[-1][0] == address:
            _, stop, number = waiting.pop()
            heappush(open_spans, (number, stop))
        while open_spans and open_spans[0][1] <= address:
            heappop(open_spans)
        yield address, sections[open_spans[0][0]] if open_spans else None


def read_sections(source: PeBytes, header: PeHeader) -> tuple[PeSection, ...]:
    """Read the section table; raise `PeError` where a section would lie outside of the file."""
    size = header.section_count * SECTION_LAYOUT.size
    table = source.read(header.sections_offset, size, "the section table")
    sections = []
    for fields in SECTION_LAYOUT.iter_unpack(table):
        name, memory_size, address, file_size, offset, *_, traits = fields
        section = PeSection(
            section_name(source, header.strings_offset, name), address, memory_size, offset, file_size, traits
        )
        if file_size:
            source.require(offset - offset % _SECTOR, file_size, f"the section {section.name}")
        sections.append(section)
    return tuple(sections)


def section_name(source: PeBytes, strings_at: int, raw: bytes) -> str:
    """Return the name in a section header, of 8 bytes; longer ones are in the string table at ``strings_at``."""
    text = raw.rstrip(b"\0")
    digits = text[1:]
    if text.startswith(b"/") and digits.isdigit() and len(digits) <= _NAME_DIGITS and strings_at:
        at = strings_at + int(digits)
        text = source.string_bytes(at, min(at + _LONGEST_NAME, source.size), "the name of a section")
    return text.decode("ascii", "backslashreplace")


def open_image(source: PeBytes) -> Image:
    """Return a DLL or program with its headers and sections read; raise `PeError` where they are damaged."""
    header = read_header(source)
    return Image(source, header, read_sections(source, header))
