"""Tables that ship with rocwheel: TOML files next to the modules that read them."""

from __future__ import annotations

from importlib.resources import files
from threading import Lock
from typing import TypeVar

import msgspec

__all__ = ["read_table"]

T = TypeVar("T")

# msgspec resolves the annotations of a type when it first decodes one; two threads that do so at once crash.
_LOCK = Lock()


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the content of the file ``name`` of ``package``; several threads may call this at once."""
    data = files(package).joinpath(name).read_bytes()
    with _LOCK:
        return msgspec.toml.decode(data, type=kind)
