"""Files at which the dynamic loader stops, though another folder has the library (glibc, ``open_verify`` in dl-load.c).

In the folders of a run path, the loader takes the first file of the name. If that is for another machine or class, it
goes on. If it is not a library at all, loading fails.
"""

from __future__ import annotations

import struct

import msgspec

from rocwheel.binary.kind import ELF_MAGIC

__all__ = ["CIRCLE", "FOLDER", "Obstacle", "find_obstacle"]

_HEADER = struct.Struct("<4s12sHHIQQQIHH")
"""The ELF header up to ``e_phentsize``."""
_HEADER_SIZE = 64
_CLASS, _DATA, _VERSION, _OSABI, _ABI_VERSION = range(5)
_64_BITS, _LITTLE_ENDIAN, _CURRENT = 2, 1, 1
_SYSTEM_V, _GNU = 0, 3
_EXECUTABLE, _SHARED_OBJECT = 2, 3
_PROGRAM_HEADER_SIZE = 56


class Obstacle(msgspec.Struct, frozen=True):
    """Why a file is not a library, in the loader's words; with ``machine``, only for objects of that machine."""

    reason: str
    machine: int | None = None

    def stops(self, machine: int) -> bool:
        """Return whether the loader stops there when it looks for a library of a machine."""
        return self.machine in {None, machine}


CIRCLE = Obstacle("Too many levels of symbolic links")
FOLDER = Obstacle("cannot read file data: Is a directory")


def find_obstacle(head: bytes) -> Obstacle | None:
    """Return why the loader stops at a file, by its first 64 bytes; None if it loads or passes over the file."""
    if len(head) < _HEADER_SIZE:
        return Obstacle("file too short")
    magic, ident, kind, machine, version, _, _, _, _, _, header_size = _HEADER.unpack_from(head)
    if magic != ELF_MAGIC:
        return Obstacle("invalid ELF header")
    if ident[_CLASS] != _64_BITS:
        return None
    if version != _CURRENT:
        return Obstacle("ELF file version does not match current one")
    reason = _fault_of_ident(ident) or _fault_of_header(kind, header_size)
    return Obstacle(reason, machine) if reason else None


def _fault_of_ident(ident: bytes) -> str:
    if ident[_DATA] != _LITTLE_ENDIAN:
        return "ELF file data encoding not little-endian"
    if ident[_VERSION] != _CURRENT:
        return "ELF file version ident does not match current one"
    if ident[_OSABI] not in {_SYSTEM_V, _GNU}:
        return "ELF file OS ABI invalid"
    # What GNU's own versions stand for, and how many there are, each release of glibc decides.
    if ident[_OSABI] == _SYSTEM_V and ident[_ABI_VERSION]:
        return "ELF file ABI version invalid"
    return "nonzero padding in e_ident" if any(ident[_ABI_VERSION + 1 :]) else ""


def _fault_of_header(kind: int, header_size: int) -> str:
    if kind not in {_EXECUTABLE, _SHARED_OBJECT}:
        return "only ET_DYN and ET_EXEC can be loaded"
    if header_size != _PROGRAM_HEADER_SIZE:
        return "ELF file's phentsize not the expected size"
    return "cannot dynamically load executable" if kind == _EXECUTABLE else ""
