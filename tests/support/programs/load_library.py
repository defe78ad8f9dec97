"""Loads a library, and compares the program headers that the loader tells of it with those in its file."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

RTLD_NOW = 2


class Info(ctypes.Structure):
    """``struct dl_phdr_info`` as far as it matters here."""

    _fields_ = (
        ("address", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("count", ctypes.c_uint16),
    )


def headers_in_file(path: str) -> bytes:
    """Return the program headers that the file's ELF header leads to."""
    with Path(path).open("rb") as file:
        start = file.read(64)
        file.seek(int.from_bytes(start[32:40], "little"))
        return file.read(56 * int.from_bytes(start[56:58], "little"))


def main(path: str) -> None:
    """Print ``loaded``, and what comes of the comparison."""
    ctypes.CDLL(path, mode=RTLD_NOW)
    print("loaded")

    def compare(info: ctypes._Pointer[Info], _size: int, _data: int | None) -> int:
        if info.contents.name == path.encode():
            seen = ctypes.string_at(info.contents.headers, 56 * info.contents.count)
            print("program headers", "as in the file" if seen == headers_in_file(path) else "differ")
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(callback(compare), None)


main(sys.argv[1])
