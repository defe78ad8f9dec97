"""Reads the names of the DLLs that a 64-bit Windows DLL or program imports ("PE Format", section ".idata")."""

from __future__ import annotations

import struct

from ._files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

MOST = 4096
"""The maximum number of sections and of imported DLLs. Damaged tables can contain any number."""

LONGEST_NAME = 512


class DamagedDllError(ValueError):
    """A file isn't a 64-bit Windows DLL or program. The text describes the problem."""


def read_imports(path: Path) -> list[str]:
    """Return the names of the DLLs that are loaded together with a file, in the order of the import table.

    DLLs from which the file imports no functions are left out, because Windows skips them. Delay-loaded DLLs are also
    left out. Raises `DamagedDllError`, and `OSError` if the file can't be read.
    """
    with open_regular(path) as file:
        return _Reader(file).imports()


class _Reader:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sections: list[tuple[int, int, int]] = []

    def imports(self) -> list[str]:
        if self._read(0, 2) != b"MZ":
            msg = "it does not begin like a Windows program"
            raise DamagedDllError(msg)
        header = self._number(60)
        if self._read(header, 4) != b"PE\0\0":
            msg = "it has no PE header"
            raise DamagedDllError(msg)
        machine, sections = struct.unpack("<HH", self._read(header + 4, 4))
        (size,) = struct.unpack("<H", self._read(header + 20, 2))
        if machine != 0x8664 or self._read(header + 24, 2) != b"\x0b\x02":
            msg = f"it is for machine type {machine:#x}, not x86-64"
            raise DamagedDllError(msg)
        self._read_sections(header + 24 + size, sections)
        has_table = self._number(header + 24 + 108) > 1
        table = self._number(header + 24 + 120) if has_table else 0
        return self._names(table) if table else []

    def _read_sections(self, start: int, count: int) -> None:
        for number in range(min(count, MOST)):
            virtual_size, address, size, offset = struct.unpack("<IIII", self._read(start + 40 * number + 8, 16))
            self._sections.append((address, max(virtual_size, size), offset))

    def _names(self, table: int) -> list[str]:
        names: list[str] = []
        for number in range(MOST):
            row = self._offset(table + 20 * number)
            address = self._number(row + 12)
            if not address:
                return names
            functions = self._number(row) or self._number(row + 16)
            if not functions or not any(self._read(self._offset(functions), 8)):
                continue
            self._file.seek(self._offset(address))
            name, end, _ = self._file.read(LONGEST_NAME).partition(b"\0")
            if not end:
                msg = "the name of an imported DLL is not terminated"
                raise DamagedDllError(msg)
            names.append(name.decode("ascii", "backslashreplace"))
        msg = f"it imports more than {MOST} DLLs"
        raise DamagedDllError(msg)

    def _offset(self, address: int) -> int:
        for start, size, offset in self._sections:
            if start <= address < start + size:
                return address - start + offset
        msg = f"its tables refer to address {address:#x}, which is not in any section"
        raise DamagedDllError(msg)

    def _number(self, offset: int) -> int:
        return int.from_bytes(self._read(offset, 4), "little")

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) < size:
            msg = f"it ends before byte {offset + size}"
            raise DamagedDllError(msg)
        return data
