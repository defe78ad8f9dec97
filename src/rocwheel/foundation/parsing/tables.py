"""Tables that ship with rocwheel: TOML files next to the modules that read them."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

from rocwheel.foundation.parsing.decoding import decode_toml

__all__ = ["read_table"]

T = TypeVar("T")


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the content of the file ``name`` of ``package``; several threads may call this at once."""
    data = files(package).joinpath(name).read_bytes()
    return decode_toml(data, kind)
