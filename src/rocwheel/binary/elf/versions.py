"""Symbol versions that a file needs and defines (LSB Core, "Symbol Versioning")."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.dynamic import DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM, DynamicFile
from rocwheel.binary.elf.mapping import find_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SymbolVersion", "VersionNeed", "VersionReader"]

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
    """What a version index of a symbol stands for: a version that is needed of ``library``, or defined where empty."""

    name: str
    library: str = ""


class VersionReader:
    """Reads the version tables of one file, and where in the string table their names begin."""

    def __init__(self, file: DynamicFile) -> None:
        self._file = file
        self._source = file.source

    def needs(self) -> tuple[VersionNeed, ...]:
        """Return what the file needs, in the order of its table."""
        return tuple(VersionNeed(self._name(library), self._name(version)) for library, version in self.need_offsets())

    def definitions(self) -> tuple[str, ...]:
        """Return the versions that the file defines, in order, without the base version that names the file."""
        return tuple(self._name(offset) for flags, offset in self.definition_offsets() if not flags & _BASE_DEFINITION)

    def by_index(self) -> dict[int, SymbolVersion]:
        """Return the versions by the index that symbols name them by, without the base version."""
        return dict(self._bounded(self._by_index()))

    def _by_index(self) -> Iterator[tuple[int, SymbolVersion]]:
        for position, (_, flags, index, _, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            if not flags & _BASE_DEFINITION:
                name, _ = self._source.unpack(_DEFINITION_NAME, position + first, "a version definition")
                yield index, SymbolVersion(self._name(name))
        for position, (_, count, library, first, _) in self._chain(DT_VERNEED, DT_VERNEEDNUM, _NEED):
            for _, (_, _, index, version, _) in self._walk(position + first, count, _NEED_VERSION):
                yield index, SymbolVersion(self._name(version), self._name(library))

    def need_offsets(self) -> Iterator[tuple[int, int]]:
        """Yield the string offsets of the library and version names that are needed."""
        return self._bounded(self._need_offsets())

    def _need_offsets(self) -> Iterator[tuple[int, int]]:
        for position, (_, count, library, first, _) in self._chain(DT_VERNEED, DT_VERNEEDNUM, _NEED):
            for _, (_, _, _, version, _) in self._walk(position + first, count, _NEED_VERSION):
                yield library, version

    def definition_offsets(self) -> Iterator[tuple[int, int]]:
        """Yield the flags and the string offset of the name of each version definition."""
        for position, (_, flags, _, _, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            name, _ = self._source.unpack(_DEFINITION_NAME, position + first, "a version definition")
            yield flags, name

    def parent_offsets(self) -> Iterator[int]:
        """Yield the string offsets of every name of the version definitions, also of their parents."""
        return self._bounded(self._parent_offsets())

    def _parent_offsets(self) -> Iterator[int]:
        for position, (_, _, _, count, _, first, _) in self._chain(DT_VERDEF, DT_VERDEFNUM, _DEFINITION):
            for _, (name, _) in self._walk(position + first, count, _DEFINITION_NAME):
                yield name

    def _chain(self, table: int, count: int, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        address = self._file.table.value(table)
        if address is not None:
            offset, _ = find_offset(self._source, self._file.segments, address, "the version table")
            yield from self._walk(offset, self._file.table.value(count) or 0, layout)

    def _bounded(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """Stop a table whose chains overlap, and so would take very long to follow."""
        for index, item in enumerate(items):
            if index == _MOST_VERSIONS:
                raise ElfError(
                    self._source.name, "more version names than a table can hold", expected=f"at most {_MOST_VERSIONS}"
                )
            yield item

    def _walk(self, offset: int, count: int, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Follow ``count`` structures, each of which ends with the distance to the next (0 at the end)."""
        if count > _MOST_VERSIONS:
            raise ElfError(
                self._source.name, f"{count} entries in a version table", expected=f"at most {_MOST_VERSIONS}"
            )
        for _ in range(count):
            fields = self._source.unpack(layout, offset, "the version table")
            yield offset, fields
            if not fields[-1]:
                return
            offset += fields[-1]

    def _name(self, offset: int) -> str:
        return self._file.string(offset, "a version name")
