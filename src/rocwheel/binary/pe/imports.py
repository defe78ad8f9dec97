"""What a DLL or program imports: from which DLLs, which functions, at once or when first called.

The layouts follow "PE Format", sections "The .idata Section" and "Delay-Load Import Tables".
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.bytes import PeError
from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.pe.sections import Image

__all__ = ["ImportedDll", "read_delay_imports", "read_imports"]

_DESCRIPTOR: Final = Struct("<IIIII")
_DELAY_DESCRIPTOR: Final = Struct("<IIIIIIII")
_THUNK: Final = Struct("<Q")
_THUNKS_AT_ONCE = 128
_BY_ORDINAL = 1 << 63
_HINT = 2
_ADDRESS = 0x7FFFFFFF
_USES_ADDRESSES = 1
"""Of a delay-load descriptor: without it, fields count from zero, not from the image base (Visual C++ 6)."""
_MOST = 1 << 20
"""Functions that one file imports, at most: a table that leads into itself ends there."""


class ImportedDll(msgspec.Struct, frozen=True):
    """A DLL that is loaded, by the name that the import table has, and what is taken from it."""

    name: str
    functions: tuple[str, ...]
    """In the table's order; ``#5`` is the function of ordinal 5."""


class _Budget:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._left = _MOST

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise PeError(self._image.source.name, f"imports more than {_MOST} functions: its tables are damaged")


def read_imports(image: Image) -> tuple[ImportedDll, ...]:
    """Return the DLLs that are loaded together with the file; raise `PeError` where a table is damaged."""
    directory = image.header.directory(Directory.IMPORTS)
    return tuple(_read_imports(image, directory.address)) if directory else ()


def _read_imports(image: Image, address: int) -> Iterator[ImportedDll]:
    budget = _Budget(image)
    while True:
        budget.spend()
        names, _, _, dll, addresses = image.unpack(_DESCRIPTOR, address, "an import descriptor")
        if not dll:
            return
        # Borland's linker leaves the names out: before binding, the table of addresses has them, too.
        yield ImportedDll(
            _dll_name(image, dll, "the name of an imported DLL"), _functions(image, names or addresses, budget)
        )
        address += _DESCRIPTOR.size


def read_delay_imports(image: Image) -> tuple[ImportedDll, ...]:
    """Return the DLLs that are loaded when a function of theirs is first called; errors as for `read_imports`."""
    directory = image.header.directory(Directory.DELAY_IMPORTS)
    return tuple(_read_delay_imports(image, directory.address)) if directory else ()


def _read_delay_imports(image: Image, address: int) -> Iterator[ImportedDll]:
    budget = _Budget(image)
    while True:
        budget.spend()
        traits, dll, _, _, names, *_ = image.unpack(_DELAY_DESCRIPTOR, address, "a delay-load descriptor")
        if not dll:
            return
        if not traits & _USES_ADDRESSES:
            found = "delay-load tables of Visual C++ 6, which no 64-bit linker writes"
            raise PeError(image.source.name, found, expected="addresses relative to the image base")
        yield ImportedDll(_dll_name(image, dll, "the name of a delay-loaded DLL"), _functions(image, names, budget))
        address += _DELAY_DESCRIPTOR.size


def _dll_name(image: Image, address: int, what: str) -> str:
    name = image.string(address, what)
    if not name:
        raise PeError(image.source.name, f"{what} is empty", expected="a file name")
    return name


def _functions(image: Image, address: int, budget: _Budget) -> tuple[str, ...]:
    return tuple(_function(image, thunk) for thunk in _thunks(image, address, budget)) if address else ()


def _thunks(image: Image, address: int, budget: _Budget) -> Iterator[int]:
    offset, end = image.offset_of(address, "an import table")
    while True:
        count = min(_THUNKS_AT_ONCE, (end - offset) // _THUNK.size)
        if not count:
            raise PeError(image.source.name, "an import table has no end inside its section")
        for (thunk,) in _THUNK.iter_unpack(image.source.read(offset, count * _THUNK.size, "an import table")):
            if not thunk:
                return
            budget.spend()
            yield thunk
        offset += count * _THUNK.size


def _function(image: Image, thunk: int) -> str:
    if thunk & _BY_ORDINAL:
        return f"#{thunk & 0xFFFF}"
    return image.string((thunk & _ADDRESS) + _HINT, "the name of an imported function")
