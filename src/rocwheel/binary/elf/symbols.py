"""The dynamic symbol table (gABI, "Symbol Table"); its length follows from the hash table or the next table."""

from __future__ import annotations

from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.dynamic import (
    DT_GNU_HASH,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERNEED,
    DT_VERSYM,
    DynamicFile,
)
from rocwheel.binary.elf.mapping import find_offset

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

__all__ = ["SymbolNames", "SymbolReader"]

SYMBOL_LAYOUT: Final = Struct("<IBBHQQ")
_NAME: Final = Struct("<I")
_HASH_HEADER: Final = Struct("<II")
_CHUNK_SYMBOLS = 1 << 12
_MOST_SYMBOLS = 1 << 22
_MOST_COPIES = 16
_FREE_NAMES, _MOST_SHARING = 64 << 20, 8
_UNDEFINED = 0
# STB_GLOBAL in the upper four bits with STT_OBJECT and STT_FUNC in the lower ones; STV_DEFAULT and STV_PROTECTED.
_STRONG = {0x11, 0x12}
# STB_WEAK, STB_GNU_UNIQUE.
_VAGUE = {2, 10}
_VISIBILITY, _VISIBLE = 3, {0, 3}
# Tables that linkers put behind the dynamic symbols: DT_RELA, DT_INIT, DT_FINI, DT_REL, DT_JMPREL, DT_INIT_ARRAY,
# DT_FINI_ARRAY, DT_RELR.
_OTHER_ADDRESSES = {7, 12, 13, 17, 23, 25, 26, 36}
_ADDRESSES = {DT_HASH, DT_STRTAB, DT_VERSYM, DT_VERDEF, DT_VERNEED, DT_GNU_HASH} | _OTHER_ADDRESSES


class SymbolNames:
    """The dynamic string table, read once, as names of symbols.

    All names together may have a few times the bytes of the table, as linkers let names share their ends: symbols of a
    damaged file that begin at every byte of one long name would take gigabytes.
    """

    def __init__(self, file: DynamicFile) -> None:
        self._name = file.source.name
        self._strings = file.source.read(file.strings.offset, file.strings.size, "the dynamic string table")
        self._left = _FREE_NAMES + _MOST_SHARING * len(self._strings)

    def __len__(self) -> int:
        return len(self._strings)

    def at(self, start: int) -> bytes:
        """Return the name that begins at ``start``, up to its NUL byte or the table's end.

        Raises `ElfError` where names come to more bytes than a table of this size can mean.
        """
        end = self._strings.find(b"\0", start)
        text = self._strings[start:] if end < 0 else self._strings[start:end]
        self.spend(len(text))
        return text

    def spend(self, size: int) -> None:
        """Count bytes that a name takes; raises as `at` does."""
        self._left -= size
        if self._left < 0:
            found = f"names of symbols that share the bytes of a string table of {len(self)} many times over"
            raise ElfError(self._name, found, remedy="It is damaged: copy or build it again.")


class SymbolReader:
    """Reads the dynamic symbols of one file."""

    def __init__(self, file: DynamicFile) -> None:
        self._file = file
        self._source, self._strings = file.source, file.strings

    def imports(self, *names: bytes) -> bool:
        """Return whether an undefined symbol has one of ``names``, without going through all symbols."""
        return any(
            section == _UNDEFINED
            for name in names
            for string in islice(self._find_string(name + b"\0"), _MOST_COPIES)
            for section in self._find_sections(string)
        )

    def name_offsets(self) -> Iterator[int]:
        """Return the string offset of each dynamic symbol's name, and perhaps a few wrong ones.

        Where the file doesn't say how many symbols there are, what stands up to the next table is taken for symbols.
        """
        return (fields[0] for fields in self.symbols())

    def sizes(self) -> Iterator[int]:
        """Return the size of each dynamic symbol, in order, and perhaps a few wrong ones."""
        return (fields[5] for fields in self.symbols())

    def exports(self, copied: Container[int] = ()) -> frozenset[bytes]:
        """Return the names of the functions and objects that are defined, global (not weak) and visible.

        ``copied`` are the numbers of the symbols that are another library's (`relocations.find_copied`).
        """
        names = SymbolNames(self._file)
        return frozenset(
            names.at(name)
            for number, (name, info, other, section, _, _) in enumerate(self.symbols())
            if section != _UNDEFINED and info in _STRONG and other & _VISIBILITY in _VISIBLE and name < len(names)
            if number not in copied
        )

    def weak_names(self) -> frozenset[bytes]:
        """Return the names of what is defined weak or unique: inline code, of which each user mostly has a copy."""
        names = SymbolNames(self._file)
        return frozenset(
            names.at(name)
            for name, info, _, section, _, _ in self.symbols()
            if section != _UNDEFINED and info >> 4 in _VAGUE and name < len(names)
        )

    def _find_string(self, text: bytes) -> Iterator[int]:
        found = self._source.find(text, self._strings.offset, self._strings.size, "the dynamic string table")
        return (position - self._strings.offset for position in found)

    def _find_sections(self, name: int) -> Iterator[int]:
        """Yield the section of each symbol whose name begins at ``name`` in the string table."""
        offset, count = self._table()
        size = count * SYMBOL_LAYOUT.size
        for position in self._source.find(_NAME.pack(name & 0xFFFFFFFF), offset, size, "the dynamic symbol table"):
            if (position - offset) % SYMBOL_LAYOUT.size == 0:
                yield self._source.unpack(SYMBOL_LAYOUT, position, "a dynamic symbol")[3]

    def symbols(self) -> Iterator[tuple[int, ...]]:
        """Yield the fields of each symbol: name, info, visibility, section, value, size."""
        offset, count = self._table()
        for start in range(0, count, _CHUNK_SYMBOLS):
            size = min(_CHUNK_SYMBOLS, count - start) * SYMBOL_LAYOUT.size
            chunk = self._source.read(offset + start * SYMBOL_LAYOUT.size, size, "the dynamic symbol table")
            yield from SYMBOL_LAYOUT.iter_unpack(chunk)

    def _table(self) -> tuple[int, int]:
        """Return the file offset of the symbols and their number; 0 of them when there is no table."""
        address = self._file.table.value(DT_SYMTAB)
        if address is None:
            return 0, 0
        offset, end = find_offset(self._source, self._file.segments, address, "the dynamic symbol table")
        count = self._count(address, end - offset)
        if count > _MOST_SYMBOLS:
            raise ElfError(self._source.name, f"{count} dynamic symbols", expected=f"at most {_MOST_SYMBOLS}")
        return offset, count

    def _count(self, address: int, room: int) -> int:
        """Return what the hash table says, else how many symbols fit before the next table.

        A GNU hash table doesn't say it: it may be empty, and leaves out symbols that are only referred to.
        """
        table = self._file.table.value(DT_HASH)
        if table is not None:
            offset, _ = find_offset(self._source, self._file.segments, table, "the hash table")
            _, count = self._source.unpack(_HASH_HEADER, offset, "the hash table")
            return int(count)
        others = (value - address for tag, value in self._file.table.entries if tag in _ADDRESSES and value > address)
        return min([room, *others]) // SYMBOL_LAYOUT.size
