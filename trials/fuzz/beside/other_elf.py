"""An ELF file as pyelftools reads it, from the addresses of the dynamic section, at which loaders look, too."""

from __future__ import annotations

import io
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.construct.lib.container import Container
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_D_TAG
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.hash import ELFHashTable
from elftools.elf.sections import SymbolTableSection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["OtherElf", "ask", "number_of", "open_other", "without_sections"]

_REFUSALS = (
    ELFError,
    ConstructError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    TypeError,
    struct.error,
    OverflowError,
)
"""What pyelftools raises for damaged files, on purpose or not."""
_SYMBOL, _INDEX = 24, 2
_Answer = TypeVar("_Answer")


def ask(question: Callable[[], _Answer]) -> _Answer | None:
    """Return pyelftools' answer; none where it can't read what is asked for."""
    try:
        return question()
    except _REFUSALS:
        return None


def open_other(data: bytes) -> OtherElf | None:
    """Return the file as pyelftools reads it, none where it can't read its headers."""
    return ask(lambda: OtherElf(data))


def number_of(names: Mapping[str, int], value: str | int) -> int:
    """Return the number that pyelftools has put a name in the place of."""
    return names[value] if isinstance(value, str) else value


def without_sections(data: bytes) -> bytes:
    """Return the file without section headers: pyelftools would follow them, not the addresses that loaders take."""
    changed = bytearray(data)
    changed[0x28:0x30] = bytes(8)
    changed[0x3C:0x40] = bytes(4)
    return bytes(changed)


class OtherElf:
    """An ELF file as pyelftools reads it; its methods raise many exceptions for damaged files, so `ask` them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.file = ELFFile(io.BytesIO(data))
        # Without a place for program headers, gABI says, there are none; pyelftools looks for them at the start.
        self.segments = list(self.file.iter_segments()) if self.file.header["e_phoff"] else []
        self.dynamic = next((one for one in self.segments if isinstance(one, DynamicSegment)), None)

    @cached_property
    def tags(self) -> list[tuple[int, int]]:
        """The entries of the dynamic section, as numbers, with the ending ``DT_NULL``."""
        assert self.dynamic is not None
        return [(number_of(ENUM_D_TAG, tag.entry.d_tag), tag.entry.d_val) for tag in self.dynamic.iter_tags()]

    def value(self, tag: str) -> int | None:
        """Return the value of a tag.

        Raises `ValueError` where there are several: pyelftools takes the first, loaders take the last.
        """
        values = [value for number, value in self.tags if number == ENUM_D_TAG[tag]]
        if len(values) > 1:
            raise ValueError(tag)
        return values[0] if values else None

    def texts(self, tag: str) -> list[str]:
        """Return the texts of every entry with this tag."""
        return [self.text(value) for number, value in self.tags if number == ENUM_D_TAG[tag]]

    @cached_property
    def strings(self) -> bytes:
        """The dynamic string table."""
        assert self.dynamic is not None
        start, size = self._place("DT_STRTAB"), self.value("DT_STRSZ")
        assert size is not None
        return self.data[start : start + size]

    def text(self, start: int) -> str:
        """Return the text that begins there in the string table."""
        return self.strings[start:].partition(b"\0")[0].decode(errors="surrogateescape")

    get_string = text
    """As pyelftools calls it of a section with strings."""

    def _place(self, tag: str) -> int:
        """Return where a table is in the file: its address, in the first segment that has it."""
        assert self.dynamic is not None
        self.value(tag)
        _, offset = self.dynamic.get_table_offset(tag)
        assert offset is not None
        return offset

    def _section(self, kind: Any, tag: str, *, number: int = 0, size: int = 0, entry: int = 1) -> Any:
        """Return a section of pyelftools for a table that the dynamic section names."""
        header = Container(
            sh_offset=self._place(tag), sh_size=size, sh_entsize=entry, sh_info=number, sh_flags=0, sh_addralign=1
        )
        return kind(header, tag, self.file, self)

    def needs(self) -> list[tuple[str, str, int]]:
        """Return the versions that are needed: library, version and index."""
        if self.value("DT_VERNEED") is None:
            return []
        found = self._versions(GNUVerNeedSection, "DT_VERNEED", "DT_VERNEEDNUM", "vn_next")
        return [
            (version.name, one.name, one["vna_other"])
            for version, parts in found
            for one in _until_last(parts, "vna_next")
        ]

    def definitions(self) -> list[tuple[str, int]]:
        """Return the versions that are defined, with their index, but for the base version that names the file."""
        if self.value("DT_VERDEF") is None:
            return []
        found = self._versions(GNUVerDefSection, "DT_VERDEF", "DT_VERDEFNUM", "vd_next")
        return [(next(parts).name, version["vd_ndx"]) for version, parts in found if not version["vd_flags"] & 1]

    def _versions(self, kind: Any, tag: str, counting: str, next_field: str) -> Iterator[tuple[Any, Any]]:
        section = self._section(kind, tag, number=self.value(counting) or 0)
        for version, parts in section.iter_versions():
            yield version, parts
            if not version[next_field]:  # pyelftools goes on with the same one
                return

    def symbols(self) -> tuple[list[Any], bool]:
        """Return the dynamic symbols, and whether these are all, as the table for older loaders says it (``DT_HASH``).

        In the newer one some may be missing; where that is damaged, they end before the next address in the section.
        """
        number, is_whole = self._symbol_count()
        section = self._section(SymbolTableSection, "DT_SYMTAB", size=number * _SYMBOL, entry=_SYMBOL)
        return [section.get_symbol(place) for place in range(number)], is_whole

    def _symbol_count(self) -> tuple[int, bool]:
        assert self.dynamic is not None
        if self.value("DT_HASH") is not None:
            table = ELFHashTable(self.file, self._place("DT_HASH"), None, self.dynamic)
            return table.get_number_of_symbols(), True
        start = self.value("DT_SYMTAB")
        assert start is not None
        room = min(value - start for _, value in self.tags if value > start) // _SYMBOL
        return min(self.dynamic.num_symbols(), room), False

    def version_indices(self, number: int) -> list[int]:
        """Return the version index of each of that many symbols; none of a file without."""
        if self.value("DT_VERSYM") is None:
            return []
        section = self._section(GNUVerSymSection, "DT_VERSYM", size=number * _INDEX, entry=_INDEX)
        start = section["sh_offset"]
        return list(struct.unpack_from(f"<{number}H", self.data, start))


def _until_last(parts: Iterator[Any], next_field: str) -> Iterator[Any]:
    for one in parts:
        yield one
        if not one[next_field]:
            return
