"""What a DLL offers to others: its own name, its functions, and those that it takes from other DLLs.

The layouts follow "PE Format", section "The .edata Section".
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.binary.pe.bytes import PeError
from rocwheel.binary.pe.header import Directory

if TYPE_CHECKING:
    from rocwheel.binary.pe.header import DirectoryEntry
    from rocwheel.binary.pe.sections import Image

__all__ = ["Exports", "read_export_addresses", "read_exports"]

_LAYOUT: Final = Struct("<IIHHIIIIIII")
_ADDRESS: Final = Struct("<I")
_ORDINAL: Final = Struct("<H")
_MOST = 1 << 20
"""Names that one DLL exports, at most."""


class Exports(msgspec.Struct, frozen=True):
    """The export table of a DLL."""

    dll: str
    """What the DLL was called when it was linked: the nearest thing to a SONAME. Empty where the table has none."""
    names: tuple[str, ...]
    """In the table's order, which the loader needs sorted."""
    forwarders: tuple[tuple[str, str], ...] = ()
    """Names that lead to another DLL, with where, such as ``NTDLL.RtlAllocateHeap``."""
    ordinal_count: int = 0
    """Functions with an address, whether they have a name or not."""


def read_exports(image: Image) -> Exports | None:
    """Return the export table, none for a file without; raise `PeError` where it is damaged."""
    directory = image.header.directory(Directory.EXPORTS)
    if directory is None:
        return None
    fields = image.unpack(_LAYOUT, directory.address, "the export table")
    dll, _, function_count, name_count, functions_at, names_at, ordinals_at = fields[4:]
    _check_counts(image, function_count, name_count)
    functions = _table(image, _ADDRESS, functions_at, function_count, "the addresses of exported functions")
    names = _table(image, _ADDRESS, names_at, name_count, "the names of exported functions")
    ordinals = _table(image, _ORDINAL, ordinals_at, name_count, "the ordinals of exported functions")
    texts = tuple(image.string(name, "the name of an exported function") for name in names)
    addresses = [_at(image, functions, ordinal) for ordinal in ordinals]
    return Exports(
        dll=image.string(dll, "the name of the DLL in its export table") if dll else "",
        names=texts,
        forwarders=tuple(_forwarders(image, directory, texts, addresses)),
        ordinal_count=sum(map(bool, functions)),
    )


def _check_counts(image: Image, *counts: int) -> None:
    for number in counts:
        if number > _MOST:
            raise PeError(
                image.source.name, f"the export table would have {number} entries", expected=f"{_MOST} at most"
            )


def read_export_addresses(image: Image) -> tuple[int, ...]:
    """Return the address of each exported function or variable; raise `PeError` as `read_exports` does."""
    directory = image.header.directory(Directory.EXPORTS)
    if directory is None:
        return ()
    *_, function_count, _, functions_at, _, _ = image.unpack(_LAYOUT, directory.address, "the export table")
    if function_count > _MOST:
        found = f"the export table would have {function_count} entries"
        raise PeError(image.source.name, found, expected=f"{_MOST} at most")
    return tuple(_table(image, _ADDRESS, functions_at, function_count, "the addresses of exported functions"))


def _table(image: Image, layout: Struct, address: int, count: int, what: str) -> list[int]:
    if not count:
        return []
    return [value for (value,) in layout.iter_unpack(image.read(address, count * layout.size, what))]


def _at(image: Image, functions: list[int], ordinal: int) -> int:
    if ordinal >= len(functions):
        found = f"an exported name has the place {ordinal} among {len(functions)} functions"
        raise PeError(image.source.name, found)
    return functions[ordinal]


def _forwarders(
    image: Image, directory: DirectoryEntry, names: tuple[str, ...], addresses: list[int]
) -> list[tuple[str, str]]:
    """Return the names whose address lies in the export table itself: it is that of a text, not of a function."""
    stop = directory.address + directory.size
    return [
        (name, image.string(address, f"where {name} leads to"))
        for name, address in zip(names, addresses, strict=True)
        if directory.address <= address < stop
    ]
