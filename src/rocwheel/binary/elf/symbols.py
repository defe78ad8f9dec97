"""Reads the dynamic symbol table, and the symbol versions that an ELF file needs or provides."""

from __future__ import annotations

from functools import cached_property, wraps
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from rocwheel.binary.elf.dynamic import (
    DT_GNU_HASH,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERDEFNUM,
    DT_VERNEED,
    DT_VERNEEDNUM,
    DT_VERSYM,
    DynamicFile,
)
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.elf.mapping import find_offset, find_table

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from rocwheel.binary.elf.header import ElfBytes, ElfSection


SYMBOL_LAYOUT: Final = Struct("<IBBHQQ")
_NAME: Final = Struct("<I")
_HASH_HEADER: Final = Struct("<II")
_CHUNK_SYMBOLS = 1 << 12
_MOST_SYMBOLS = 1 << 22
_MOST_COPIES = 16
_FREE_NAMES, _MOST_SHARING = 64 << 20, 8
_UNDEFINED = 0
# STB_GLOBAL in the upper four bits, STT_OBJECT and STT_FUNC in the lower four; STV_DEFAULT and STV_PROTECTED.
_STRONG = {0x11, 0x12}
# STB_WEAK, STB_GNU_UNIQUE.
_VAGUE = {2, 10}
_VISIBILITY, _VISIBLE = 3, {0, 3}
# The tables that linkers put after the dynamic symbols: DT_RELA, DT_INIT, DT_FINI, DT_REL, DT_JMPREL, DT_INIT_ARRAY,
# DT_FINI_ARRAY, DT_RELR.
_OTHER_ADDRESSES = {7, 12, 13, 17, 23, 25, 26, 36}
_ADDRESSES = {DT_HASH, DT_STRTAB, DT_VERSYM, DT_VERDEF, DT_VERNEED, DT_GNU_HASH} | _OTHER_ADDRESSES


def iter_symbol_rows(source: ElfBytes, table: ElfSection) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the file offset of each row in a section of symbols, and the fields that `SymbolReader.symbols` yields."""
    usable = table.size - table.size % SYMBOL_LAYOUT.size
    rows = SYMBOL_LAYOUT.iter_unpack(source.read(table.offset, usable, "the symbols"))
    for number, row in enumerate(rows):
        yield table.offset + number * SYMBOL_LAYOUT.size, row


class SymbolNames:
    """The dynamic string table, read once, for symbol names.

    Linkers let names share their endings, so the total size of all names can be several times the size of the table. In
    a damaged file, symbols may begin at every byte of one long name and therefore take up gigabytes.
    """

    def __init__(self, file: DynamicFile) -> None:
        self._name = file.source.name
        self._strings = file.source.read(file.strings.offset, file.strings.size, "the dynamic string table")
        self._left = _FREE_NAMES + _MOST_SHARING * len(self._strings)

    def __len__(self) -> int:
        return len(self._strings)

    def at(self, start: int) -> bytes:
        """Return the name that begins at ``start``, up to its NUL byte or the end of the table.

        Raises `ElfError` if the total size of the names exceeds what is possible in a valid table of this size.
        """
        end = self._strings.find(b"\0", start)
        text = self._strings[start:] if end < 0 else self._strings[start:end]
        self.spend(len(text))
        return text

    def spend(self, size: int) -> None:
        """Add the bytes of a name to the total; raise `ElfError` at the same limit as `at`."""
        self._left -= size
        if self._left < 0:
            found = f"symbol names that reuse the {len(self)} bytes of the string table too many times"
            raise ElfError(self._name, found, remedy="The file is damaged. Copy the file again, or rebuild it.")


class SymbolReader:
    """Reads the dynamic symbols of one file."""

    def __init__(self, file: DynamicFile) -> None:
        self._file = file
        self._source, self._strings = file.source, file.strings

    def imports(self, *names: bytes) -> bool:
        """Return whether any undefined symbol has one of ``names``, without reading all symbols."""
        return any(
            section == _UNDEFINED
            for name in names
            for string in islice(self._find_string(name + b"\0"), _MOST_COPIES)
            for section in self._find_sections(string)
        )

    def exports(self, copied: Container[int] = ()) -> frozenset[bytes]:
        """Return the names of the defined functions and objects that are global (not weak) and visible.

        ``copied`` contains the numbers of the symbols that belong to another library (`relocations.find_copied`).
        """
        names = SymbolNames(self._file)
        return frozenset(
            names.at(name)
            for number, (name, info, other, section, _, _) in enumerate(self.symbols())
            if section != _UNDEFINED and info in _STRONG and other & _VISIBILITY in _VISIBLE and name < len(names)
            if number not in copied
        )

    def weak_names(self) -> frozenset[bytes]:
        """Return the names of weak or unique definitions: inline code of which most users have a separate copy."""
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
        """Yield the section number of each symbol whose name begins at ``name`` in the string table."""
        offset, count = self._table()
        size = count * SYMBOL_LAYOUT.size
        for position in self._source.find(_NAME.pack(name & 0xFFFFFFFF), offset, size, "the dynamic symbol table"):
            if (position - offset) % SYMBOL_LAYOUT.size == 0:
                yield self._source.unpack(SYMBOL_LAYOUT, position, "a dynamic symbol")[3]

    def symbols(self) -> Iterator[tuple[int, ...]]:
        """Yield the fields of each symbol: name, info, visibility, section, value, size.

        If the file doesn't record the number of symbols, all data up to the next table is treated as symbols. In that
        case, a few invalid symbols may follow the last symbol.
        """
        offset, count = self._table()
        for start in range(0, count, _CHUNK_SYMBOLS):
            size = min(_CHUNK_SYMBOLS, count - start) * SYMBOL_LAYOUT.size
            chunk = self._source.read(offset + start * SYMBOL_LAYOUT.size, size, "the dynamic symbol table")
            yield from SYMBOL_LAYOUT.iter_unpack(chunk)

    def _table(self) -> tuple[int, int]:
        """Return the file offset and the number of the symbols, or zeros if there is no table."""
        address = self._file.table.value(DT_SYMTAB)
        if address is None:
            return 0, 0
        offset, end = find_offset(self._source, self._file.segments, address, "the dynamic symbol table")
        count = self._count(address, end - offset)
        if count > _MOST_SYMBOLS:
            raise ElfError(self._source.name, f"{count} dynamic symbols", expected=f"at most {_MOST_SYMBOLS}")
        return offset, count

    def _count(self, address: int, room: int) -> int:
        """Return the number from the hash table or, if it has no number, the number of symbols before the next table.

        A GNU hash table doesn't record the number: it may be empty, and it omits symbols that are only referenced.
        """
        table = self._file.table.value(DT_HASH)
        if table is not None:
            offset, _ = find_offset(self._source, self._file.segments, table, "the hash table")
            _, count = self._source.unpack(_HASH_HEADER, offset, "the hash table")
            return int(count)
        others = (value - address for tag, value in self._file.table.entries if tag in _ADDRESSES and value > address)
        return min([room, *others]) // SYMBOL_LAYOUT.size


_NEED: Final = Struct("<HHIII")
_NEED_VERSION: Final = Struct("<IHHII")
_DEFINITION: Final = Struct("<HHHHIII")
_DEFINITION_NAME: Final = Struct("<II")
_Item = TypeVar("_Item")
_BASE_DEFINITION = 1
_MOST_VERSIONS = 1 << 13


class VersionNeed(msgspec.Struct, frozen=True, order=True):
    """A symbol version that a file needs from a library, such as ``GLIBC_2.34`` from ``libc.so.6``."""

    library: str
    version: str


class SymbolVersion(msgspec.Struct, frozen=True):
    """The meaning of a version index: a version needed from ``library``, or a defined version if that is empty."""

    name: str
    library: str = ""


def _bounded(method: Callable[[VersionReader], Iterator[_Item]]) -> Callable[[VersionReader], Iterator[_Item]]:
    """Stop reading a table in which chains overlap and would take too long to follow."""

    @wraps(method)
    def bounded(reader: VersionReader) -> Iterator[_Item]:
        for index, item in enumerate(method(reader)):
            if index == _MOST_VERSIONS:
                found, expected = "more version names than a table can hold", f"at most {_MOST_VERSIONS}"
                raise ElfError(reader.source.name, found, expected=expected)
            yield item

    return bounded


class VersionReader:
    """Reads a file's version tables, and the string table offsets of the names in them."""

    def __init__(self, file: DynamicFile) -> None:
        self._file = file
        self.source = file.source

    def needs(self) -> tuple[VersionNeed, ...]:
        """Return the versions that the file needs, in table order."""
        return tuple(VersionNeed(self._name(library), self._name(version)) for library, version in self.need_offsets())

    def definitions(self) -> tuple[str, ...]:
        """Return the versions that the file defines, in order, without the base version, which is the file's name."""
        return tuple(self._name(offset) for flags, offset in self.definition_offsets() if not flags & _BASE_DEFINITION)

    def by_index(self) -> dict[int, SymbolVersion]:
        """Return the versions except the base version, keyed by the index that symbols use."""
        return dict(self._by_index())

    @_bounded
    def _by_index(self) -> Iterator[tuple[int, SymbolVersion]]:
        for position, (_, flags, index, _, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            if not flags & _BASE_DEFINITION:
                name, _ = self.source.unpack(_DEFINITION_NAME, position + first, "a version definition")
                yield index, SymbolVersion(self._name(name))
        for position, (_, count, library, first, _) in self._chain(DT_VERNEED, DT_VERNEEDNUM, _NEED):
            for _, (_, _, index, version, _) in self._walk(position + first, count, _NEED_VERSION):
                yield index, SymbolVersion(self._name(version), self._name(library))

    @_bounded
    def need_offsets(self) -> Iterator[tuple[int, int]]:
        """Yield the string table offsets of the names of the needed libraries and versions."""
        for position, (_, count, library, first, _) in self._chain(DT_VERNEED, DT_VERNEEDNUM, _NEED):
            for _, (_, _, _, version, _) in self._walk(position + first, count, _NEED_VERSION):
                yield library, version

    def definition_offsets(self) -> Iterator[tuple[int, int]]:
        """Yield the flags of each version definition, and the string table offset of its name."""
        for position, (_, flags, _, _, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            name, _ = self.source.unpack(_DEFINITION_NAME, position + first, "a version definition")
            yield flags, name

    @_bounded
    def parent_offsets(self) -> Iterator[int]:
        """Yield the string table offsets of all names in the version definitions, including the parents' names."""
        for position, (_, _, _, count, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            for _, (name, _) in self._walk(position + first, count, _DEFINITION_NAME):
                yield name

    def _chain(self, table: int, count: int, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        address = self._file.table.value(table)
        if address is not None:
            offset, _ = find_offset(self.source, self._file.segments, address, "the version table")
            yield from self._walk(offset, self._file.table.value(count) or 0, layout)

    def _walk(self, offset: int, count: int, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Iterate over ``count`` structures, each ending with the distance to the next structure (0 at the end)."""
        if count > _MOST_VERSIONS:
            raise ElfError(
                self.source.name, f"{count} entries in a version table", expected=f"at most {_MOST_VERSIONS}"
            )
        for _ in range(count):
            fields = self.source.unpack(layout, offset, "the version table")
            yield offset, fields
            if not fields[-1]:
                return
            offset += fields[-1]

    def _name(self, offset: int) -> str:
        return self._file.string(offset, "a version name")


_INDEX: Final = Struct("<H")
_NO_SECTION, _ABSOLUTE = 0, 0xFFF1
_GLOBAL, _DEFINING = 1, {1, 2, 10}
_TLS, _NAMED = 6, {0, 1, 2, 5, 6, 10}
_HIDDEN_VERSION, _OLDEST_VERSION = 0x8000, 2


class SymbolReference(msgspec.Struct, frozen=True, order=True):
    """A symbol that another file must define; ``version`` and its ``library`` may be empty."""

    name: str
    version: str = ""
    library: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


class Linkage(msgspec.Struct, frozen=True, dict=True):
    """The dynamic symbols of one file, as other files see them."""

    definitions: frozenset[bytes] = frozenset()
    """Strong and weak symbols: ``name``, ``name@@version`` (default version), or ``name@version`` (older version)."""
    versions: tuple[bytes, ...] = ()
    """The versions that the file defines."""
    references: tuple[SymbolReference, ...] = ()
    """The symbols that the file references but doesn't define, except weak references, which may stay undefined."""
    has_versions: bool = True
    """Whether the symbols have version indices (``DT_VERSYM``), even if only references have them."""

    def defines(self, reference: SymbolReference) -> bool:
        """Return whether the loader binds a reference to a symbol in this file, following glibc's ``elf/dl-lookup.c``.

        A reference with a version matches symbols with the same version and symbols without versions. A reference
        without a version matches symbols with the default version.
        """
        name = reference.name.encode()
        if name in self.definitions:
            return True
        if reference.version:
            version = reference.version.encode()
            return name + b"@@" + version in self.definitions or name + b"@" + version in self.definitions
        return name in self._default_names

    @cached_property
    def _default_names(self) -> frozenset[bytes]:
        """The names that have a default version; avoids searching through all versions, which can be thousands."""
        parts = (definition.rpartition(b"@@") for definition in self.definitions)
        versions = set(self.versions)
        return frozenset(name for name, mark, version in parts if mark and version in versions)


def read_linkage(file: DynamicFile) -> Linkage:
    """Read the symbols of a dynamically linked file; raise `ElfError` if a table is outside the file."""
    return _Reading(file).read()


class _Reading:
    """The combined dynamic symbol tables of a file."""

    def __init__(self, file: DynamicFile) -> None:
        self._symbols = list(SymbolReader(file).symbols())
        self._names = SymbolNames(file)
        self._versions = VersionReader(file).by_index()
        self._indices = _read_indices(file, len(self._symbols))

    def read(self) -> Linkage:
        definitions: set[bytes] = set()
        references: list[SymbolReference] = []
        for number, (start, info, other, section, value, _) in enumerate(self._symbols):
            kind = info & 0xF
            if kind not in _NAMED or other & _VISIBILITY not in _VISIBLE or not 0 < start < len(self._names):
                continue
            if section == _NO_SECTION:
                if info >> 4 == _GLOBAL:
                    references.append(self._reference(number, start))
            elif info >> 4 in _DEFINING and (value or section == _ABSOLUTE or kind == _TLS):
                definitions.add(self._definition(number, start))
        versions = [version.name.encode() for version in self._versions.values() if not version.library]
        unmet = tuple(dict.fromkeys(references))
        return Linkage(frozenset(definitions), tuple(versions), unmet, has_versions=bool(self._indices))

    def _version(self, number: int) -> tuple[SymbolVersion | None, bool]:
        """Return the version of a symbol, and whether only references to that version are bound to the symbol."""
        index = self._indices[number] if number < len(self._indices) else 0
        version = self._versions.get(index & ~_HIDDEN_VERSION)
        # A reference without a version also binds to the oldest version, because it was linked before other versions
        # existed.
        return version, bool(index & _HIDDEN_VERSION) and index & ~_HIDDEN_VERSION != _OLDEST_VERSION

    def _reference(self, number: int, start: int) -> SymbolReference:
        version, _ = self._version(number)
        name = self._names.at(start).decode(errors="replace")
        return SymbolReference(name, version.name, version.library) if version else SymbolReference(name)

    def _definition(self, number: int, start: int) -> bytes:
        version, is_hidden = self._version(number)
        if version is None or version.library:
            return self._names.at(start)
        suffix = (b"@" if is_hidden else b"@@") + version.name.encode()
        self._names.spend(len(suffix))
        return self._names.at(start) + suffix


def _read_indices(file: DynamicFile, count: int) -> Sequence[int]:
    """Return the version index of each symbol, or an empty sequence for a file without versions."""
    address = file.table.value(DT_VERSYM)
    if address is None:
        return ()
    offset, room = find_table(file.source, file.segments, address, count * _INDEX.size, "the symbols' versions")
    size = min(count, room // _INDEX.size) * _INDEX.size
    return [index for (index,) in _INDEX.iter_unpack(file.source.read(offset, size, "the symbols' versions"))]
