"""DLLs of a few hundred bytes that need others, for whatever reads import tables; no system can load them.

The layout follows Microsoft's "PE Format": one section holds the import table.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["small_dll"]

_HEADER = 0x40
_SECTION_AT = 0x200
_ADDRESS = 0x1000
_ENTRY = 20


def small_dll(needs: Sequence[str] = (), *, machine: int = 0x8664) -> bytes:
    """Return a DLL for x86-64 that imports nothing but the DLLs of these names."""
    names_at = _ADDRESS + _ENTRY * (len(needs) + 1)
    table, names = b"", b""
    for name in needs:
        table += struct.pack("<IIIII", 0, 0, 0, names_at + len(names), _ADDRESS)
        names += name.encode() + b"\0"
    content = table + bytes(_ENTRY) + names
    directories = struct.pack("<II", 0, 0) + struct.pack("<II", _ADDRESS if needs else 0, len(table) + _ENTRY)
    optional = struct.pack("<H", 0x20B).ljust(108, b"\0") + struct.pack("<I", 16) + directories.ljust(128, b"\0")
    coff = struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(optional), 0x2022)
    section = b".idata\0\0" + struct.pack("<IIII", len(content), _ADDRESS, len(content), _SECTION_AT) + bytes(16)
    head = b"MZ".ljust(60, b"\0") + struct.pack("<I", _HEADER) + b"PE\0\0" + coff + optional + section
    return head.ljust(_SECTION_AT, b"\0") + content
