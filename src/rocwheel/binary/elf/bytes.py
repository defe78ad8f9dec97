"""Bounded reading of an ELF file's bytes, as laid out by the System V ABI (gABI, chapters 4 and 5)."""

from __future__ import annotations

from rocwheel.binary.bounded_bytes import BoundedBytes, Buffer, viewing
from rocwheel.core.errors import InputError

__all__ = ["Buffer", "ElfBytes", "ElfError", "viewing"]


class ElfError(InputError):
    """An ELF file that can't be used: damaged, of an unsupported class, or without what the work needs."""


class ElfBytes(BoundedBytes):
    """The bytes of one ELF file; what lies outside of it raises `ElfError`."""

    __slots__ = ()

    error = ElfError
    whole = "a whole ELF file"
