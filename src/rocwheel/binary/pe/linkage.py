"""Reads the imports and exports of a DLL or program, and the pointers that the loader corrects.

The layouts follow "PE Format", sections "The .edata Section", "The .idata Section", "Delay-Load Import Tables", and
"The .reloc Section". The .reloc section has one block for each page of 4096 bytes. A block has a header of u32 address
and u32 size, and a u16 for each location. The upper four bits are the kind of the relocation, and the rest is the
offset in the page.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.header import PeDirectory, PeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.pe.header import Image


_LAYOUT: Final = Struct("<IIHHIIIIIII")
_ADDRESS_ENTRY: Final = Struct("<I")
_ORDINAL: Final = Struct("<H")
_MOST = 1 << 20
"""The maximum number of names that a DLL exports or functions that a file imports.

This limit ends the reading of a table that contains a loop.
"""


class Exports(msgspec.Struct, frozen=True):
    """A DLL's export table."""

    dll: str
    """The DLL's name when it was linked, similar to a SONAME, or an empty string if the table has no name."""
    names: tuple[str, ...]
    """The exported names in table order. The loader requires the names to be sorted."""
    forwarders: tuple[tuple[str, str], ...] = ()
    """The names that are forwarded to another DLL, with their targets, such as ``NTDLL.RtlAllocateHeap``."""
    ordinal_count: int = 0
    """The number of functions with an address, with or without a name."""


def read_exports(image: Image) -> Exports | None:
    """Return the export table, or `None` if the file has no table; raise `PeError` if the table is damaged."""
    directory = image.header.directory(PeDirectory.EXPORTS)
    if directory is None:
        return None
    fields = image.unpack(_LAYOUT, directory.address, "the export table")
    dll, _, function_count, name_count, functions_at, names_at, ordinals_at = fields[4:]
    _check_counts(image, function_count, name_count)
    functions = _table(image, _ADDRESS_ENTRY, functions_at, function_count, "the addresses of exported functions")
    names = _table(image, _ADDRESS_ENTRY, names_at, name_count, "the names of exported functions")
    ordinals = _table(image, _ORDINAL, ordinals_at, name_count, "the ordinals of exported functions")
    texts = tuple(image.string(name, "the name of an exported function") for name in names)
    for ordinal in ordinals:
        if ordinal >= len(functions):
            found = f"an exported name has the index {ordinal}, but there are only {len(functions)} functions"
            raise PeError(image.source.name, found)
    # If a name's address is in the export table itself, the name is forwarded: the address has a text, not a function.
    stop = directory.address + directory.size
    forwarded = ((name, functions[ordinal]) for name, ordinal in zip(texts, ordinals, strict=True))
    return Exports(
        dll=image.string(dll, "the name of the DLL in its export table") if dll else "",
        names=texts,
        forwarders=tuple(
            (name, image.string(address, f"the target of {name}"))
            for name, address in forwarded
            if directory.address <= address < stop
        ),
        ordinal_count=sum(map(bool, functions)),
    )


def _check_counts(image: Image, *counts: int) -> None:
    for number in counts:
        if number > _MOST:
            found = f"the export table would have {number} entries"
            raise PeError(image.source.name, found, expected=f"at most {_MOST}")


def read_export_addresses(image: Image) -> tuple[int, ...]:
    """Return the address of each exported function or variable; raise the same errors as `read_exports`."""
    directory = image.header.directory(PeDirectory.EXPORTS)
    if directory is None:
        return ()
    *_, function_count, _, functions_at, _, _ = image.unpack(_LAYOUT, directory.address, "the export table")
    _check_counts(image, function_count)
    return tuple(_table(image, _ADDRESS_ENTRY, functions_at, function_count, "the addresses of exported functions"))


def _table(image: Image, layout: Struct, address: int, count: int, what: str) -> list[int]:
    if not count:
        return []
    return [value for (value,) in layout.iter_unpack(image.read(address, count * layout.size, what))]


_DESCRIPTOR: Final = Struct("<IIIII")
_DELAY_DESCRIPTOR: Final = Struct("<IIIIIIII")
_THUNK: Final = Struct("<Q")
_THUNKS_AT_ONCE = 128
_BY_ORDINAL = 1 << 63
_HINT = 2
_ADDRESS = 0x7FFFFFFF
_USES_ADDRESSES = 1
"""A flag in a delay-load descriptor. Without it, fields are absolute, not relative to the image base (Visual C++ 6)."""


class ImportedDll(msgspec.Struct, frozen=True):
    """A DLL that the file loads, named as in the import table, and the functions that the file imports from the DLL."""

    name: str
    functions: tuple[str, ...]
    """The functions in table order; ``#5`` is the function with ordinal 5."""


class _Budget:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._left = _MOST

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise PeError(self._image.source.name, f"imports more than {_MOST} functions: its tables are damaged")


def read_imports(image: Image) -> tuple[ImportedDll, ...]:
    """Return the DLLs that are loaded together with the file; raise `PeError` if a table is damaged."""
    directory = image.header.directory(PeDirectory.IMPORTS)
    return tuple(_read_imports(image, directory.address)) if directory else ()


def _read_imports(image: Image, address: int) -> Iterator[ImportedDll]:
    budget = _Budget(image)
    while True:
        budget.spend()
        names, _, _, dll, addresses = image.unpack(_DESCRIPTOR, address, "an import descriptor")
        if not dll:
            return
        # Borland's linker omits the names. Before binding, the table of addresses also has them.
        yield ImportedDll(
            _dll_name(image, dll, "the name of an imported DLL"), _functions(image, names or addresses, budget)
        )
        address += _DESCRIPTOR.size


def read_delay_imports(image: Image) -> tuple[ImportedDll, ...]:
    """Return the DLLs that are loaded at the first call to one of their functions.

    Raises the same errors as `read_imports`.
    """
    directory = image.header.directory(PeDirectory.DELAY_IMPORTS)
    return tuple(_read_delay_imports(image, directory.address)) if directory else ()


def _read_delay_imports(image: Image, address: int) -> Iterator[ImportedDll]:
    budget = _Budget(image)
    while True:
        budget.spend()
        traits, dll, _, _, names, *_ = image.unpack(_DELAY_DESCRIPTOR, address, "a delay-load descriptor")
        if not dll:
            return
        if not traits & _USES_ADDRESSES:
            found = "delay-load tables from Visual C++ 6, which 64-bit linkers don't write"
            raise PeError(image.source.name, found, expected="addresses relative to the image base")
        yield ImportedDll(_dll_name(image, dll, "the name of a delay-loaded DLL"), _functions(image, names, budget))
        address += _DELAY_DESCRIPTOR.size


def _dll_name(image: Image, address: int, what: str) -> str:
    name = image.string(address, what)
    if not name:
        raise PeError(image.source.name, f"{what} is empty", expected="a file name")
    return name


def _functions(image: Image, address: int, budget: _Budget) -> tuple[str, ...]:
    return tuple(
        f"#{thunk & 0xFFFF}"
        if thunk & _BY_ORDINAL
        else image.string((thunk & _ADDRESS) + _HINT, "the name of an imported function")
        for thunk in (_thunks(image, address, budget) if address else ())
    )


def _thunks(image: Image, address: int, budget: _Budget) -> Iterator[int]:
    offset, end = image.offset_of(address, "an import table")
    while True:
        count = min(_THUNKS_AT_ONCE, (end - offset) // _THUNK.size)
        if not count:
            raise PeError(image.source.name, "an import table doesn't end inside its section")
        for (thunk,) in _THUNK.iter_unpack(image.source.read(offset, count * _THUNK.size, "an import table")):
            if not thunk:
                return
            budget.spend()
            yield thunk
        offset += count * _THUNK.size


_BLOCK: Final = Struct("<II")
_PLACE: Final = Struct("<H")
_POINTER: Final = Struct("<Q")
_PAGE: Final = 4096
_DIR64: Final = 10
_KIND_SHIFT, _OFFSET = 12, 0xFFF


def iter_pointers(image: Image) -> Iterator[tuple[int, int]]:
    """Yield the file offset of each 64-bit pointer that the loader corrects, and the address in the pointer.

    The address is relative to the image base. Raises `PeError` for damaged tables, and for pointers whose bytes aren't
    in the file.
    """
    directory = image.header.directory(PeDirectory.RELOCATIONS)
    position, stop = (directory.address, directory.address + directory.size) if directory else (0, 0)
    while position + _BLOCK.size <= stop:
        page, size = image.unpack(_BLOCK, position, "a block of base relocations")
        if not _BLOCK.size <= size <= stop - position:
            found = f"a block of base relocations of {size} bytes at {position:#x}, in a table that ends at {stop:#x}"
            raise PeError(image.source.name, found)
        places = image.read(position + _BLOCK.size, size - _BLOCK.size, "base relocations")
        yield from _block_pointers(image, page, places[: len(places) // _PLACE.size * _PLACE.size])
        position += size


def _block_pointers(image: Image, page: int, places: bytes) -> Iterator[tuple[int, int]]:
    values = (value for (value,) in _PLACE.iter_unpack(places))
    offsets = [value & _OFFSET for value in values if value >> _KIND_SHIFT == _DIR64]
    if not offsets:
        return
    what = "a pointer with a base relocation"
    first, last = min(offsets), max(offsets)
    content = image.read(page + first, last - first + _POINTER.size, what)
    at, _ = image.offset_of(page + first, what)
    for offset in offsets:
        (value,) = _POINTER.unpack_from(content, offset - first)
        yield at + offset - first, value - image.header.image_base
