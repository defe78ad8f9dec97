"""The symbols that an ELF file needs from others, and those that it provides (gABI; LSB, "Symbol Versioning")."""

from __future__ import annotations

from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.elf.dynamic import DT_VERSYM
from rocwheel.binary.elf.mapping import find_table
from rocwheel.binary.elf.symbols import SymbolNames, SymbolReader
from rocwheel.binary.elf.versions import SymbolVersion, VersionReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.elf.dynamic import DynamicFile

__all__ = ["Linkage", "SymbolReference", "read_linkage"]

_INDEX: Final = Struct("<H")
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_GLOBAL, _DEFINING = 1, {1, 2, 10}
_TLS, _NAMED = 6, {0, 1, 2, 5, 6, 10}
_VISIBILITY, _VISIBLE = 3, {0, 3}
_HIDDEN_VERSION, _OLDEST_VERSION = 0x8000, 2


class SymbolReference(msgspec.Struct, frozen=True, order=True):
    """A symbol that has to be defined by another file; ``version`` and the ``library`` of that version may be empty."""

    name: str
    version: str = ""
    library: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


class Linkage(msgspec.Struct, frozen=True, dict=True):
    """The dynamic symbols of one file, as other files see them."""

    definitions: frozenset[bytes] = frozenset()
    """Strong and weak ones: ``name``, ``name@@version`` for the default version, ``name@version`` for an older one."""
    versions: tuple[bytes, ...] = ()
    """The versions that it defines."""
    references: tuple[SymbolReference, ...] = ()
    """What it refers to without defining it; weak references, which may stay without a definition, left out."""
    has_versions: bool = True
    """Whether its symbols have version indices at all (``DT_VERSYM``), if only for what it refers to."""

    def defines(self, reference: SymbolReference) -> bool:
        """Return whether the loader binds a reference to this file, as glibc's ``elf/dl-lookup.c`` decides.

        A version is met by the same version, or by a symbol without any. A reference without a version takes the
        default version.
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
        """What it defines with a default version: not looked for by each of its versions, which may be thousands."""
        parts = (definition.rpartition(b"@@") for definition in self.definitions)
        versions = set(self.versions)
        return frozenset(name for name, mark, version in parts if mark and version in versions)


def read_linkage(file: DynamicFile) -> Linkage:
    """Read the symbols of a dynamically linked file; raises `ElfError` when a table lies outside of the file."""
    return _Reading(file).read()


class _Reading:
    """The tables of a file's dynamic symbols, put together."""

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
            if section == _UNDEFINED:
                if info >> 4 == _GLOBAL:
                    references.append(self._reference(number, start))
            elif info >> 4 in _DEFINING and (value or section == _ABSOLUTE or kind == _TLS):
                definitions.add(self._definition(number, start))
        versions = [version.name.encode() for version in self._versions.values() if not version.library]
        unmet = tuple(dict.fromkeys(references))
        return Linkage(frozenset(definitions), tuple(versions), unmet, has_versions=bool(self._indices))

    def _version(self, number: int) -> tuple[SymbolVersion | None, bool]:
        """Return the version of a symbol, and whether it is one that only references to that version bind to."""
        index = self._indices[number] if number < len(self._indices) else 0
        version = self._versions.get(index & ~_HIDDEN_VERSION)
        # A reference without a version takes the oldest version, too: it was linked before there were others.
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
    """Return the version index of each symbol; none in a file without versions."""
    address = file.table.value(DT_VERSYM)
    if address is None:
        return ()
    offset, room = find_table(file.source, file.segments, address, count * _INDEX.size, "the symbols' versions")
    size = min(count, room // _INDEX.size) * _INDEX.size
    return [index for (index,) in _INDEX.iter_unpack(file.source.read(offset, size, "the symbols' versions"))]
