"""Bounded reading of the bytes of a Portable Executable (Microsoft, "PE Format")."""

from __future__ import annotations

from rocwheel.binary.bounded_bytes import BoundedBytes
from rocwheel.core.errors import InputError

__all__ = ["PeBytes", "PeError"]


class PeError(InputError):
    """A DLL or program that can't be used: damaged, of an unsupported class, or without what the work needs."""


class PeBytes(BoundedBytes):
    """The bytes of one DLL or program; what lies outside of it raises `PeError`."""

    __slots__ = ()

    error = PeError
    whole = "a whole PE file"
