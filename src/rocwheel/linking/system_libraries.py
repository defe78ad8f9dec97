"""The libraries of the operating system, as far as a policy allows them, and the symbols that they define."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.tables import read_table
from rocwheel.linking.loader import Library

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AllowedLibraries",
    "allowed_libraries",
    "interpreter_symbols",
    "unversioned_symbols",
]


class AllowedLibraries:
    """What every supported system has, by patterns of SONAMEs; nothing is known of the files."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)

    def find(self, name: str, machine: int) -> Library | None:  # noqa: ARG002 (the protocol's)
        """Return a library that stands for any allowed one of that name."""
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return Library(name, f"system:{name}", None)
        return None


class _Interpreter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    symbols: tuple[str, ...]
    math: tuple[str, ...]


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    libraries: dict[str, tuple[str, ...]]
    symbols: dict[str, tuple[str, ...]]
    interpreter: _Interpreter


@functools.cache
def _policy() -> _Policy:
    return read_table("rocwheel.linking", "system_libraries.toml", _Policy)


def allowed_libraries(more: Iterable[str] = ()) -> AllowedLibraries:
    """Return what the policy beside this module allows, and the SONAMEs that fit ``more`` patterns."""
    return AllowedLibraries((*_patterns(), *more))


def _patterns() -> tuple[str, ...]:
    return tuple(pattern for patterns in _policy().libraries.values() for pattern in patterns)


def interpreter_symbols() -> tuple[str, ...]:
    """Return patterns of the symbols that are there once Python runs."""
    found = _policy().interpreter
    return (*found.symbols, *(name + kind for name in found.math for kind in ("", "f", "l")))


def unversioned_symbols(soname: str) -> tuple[str, ...] | None:
    """Return patterns of the symbols without versions that a library of the policy defines; none for any other."""
    for pattern, symbols in _policy().symbols.items():
        if fnmatchcase(soname, pattern):
            return symbols
    return () if any(fnmatchcase(soname, pattern) for pattern in _patterns()) else None
