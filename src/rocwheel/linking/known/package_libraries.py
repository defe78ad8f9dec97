"""Which public packages have libraries that are not named after them."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.foundation.parsing.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["package_of_library"]


@functools.cache
def _libraries() -> dict[str, tuple[str, ...]]:
    return read_table(__package__, "package_libraries.toml", dict[str, tuple[str, ...]])


def package_of_library(name: str, packages: Collection[str]) -> str:
    """Return that one of some packages, given by their normalized names, that brings a library; empty if none does."""
    return next((one for one, patterns in _libraries().items() if one in packages and _fits(name, patterns)), "")


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
