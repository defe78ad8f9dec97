"""The libraries of the operating system that a policy allows, and the symbols that these and Python define."""

from __future__ import annotations

import functools
import re
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.linking.loader import Library

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AllowedLibraries",
    "allowed_libraries",
    "defines_by_default",
    "interpreter_symbols",
    "is_glibc_library",
    "plugin_symbols",
    "stable_abi",
    "unversioned_symbols",
]


class AllowedLibraries:
    """The libraries that every supported system has, by patterns of SONAMEs. Nothing is known of the files."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)

    def find(self, name: str, machine: int) -> Library | None:  # noqa: ARG002 (the protocol's)
        """Return a library that stands for any allowed library of that name; None if none is allowed."""
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
    plugins: dict[str, tuple[str, ...]]


class _Symbols(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    brings: dict[str, tuple[str, ...]]
    names: dict[str, str]


@functools.cache
def _policy() -> _Policy:
    return read_table(__package__, "system_libraries.toml", _Policy)


def allowed_libraries(more: Iterable[str] = ()) -> AllowedLibraries:
    """Return what the policy next to this module allows, and the SONAMEs that match ``more`` patterns."""
    return AllowedLibraries((*_patterns(), *more))


def is_glibc_library(name: str) -> bool:
    """Return whether a name is that of a library of glibc, which each process has."""
    return any(fnmatchcase(name, pattern) for pattern in _policy().libraries["glibc"])


def _patterns() -> tuple[str, ...]:
    return tuple(pattern for patterns in _policy().libraries.values() for pattern in patterns)


def interpreter_symbols() -> tuple[str, ...]:
    """Return patterns of the symbols that the Python interpreter defines."""
    found = _policy().interpreter
    return (*found.symbols, *(name + kind for name in found.math for kind in ("", "f", "l")))


def plugin_symbols() -> dict[str, tuple[str, ...]]:
    """Return, by the function through which a program enters its plug-ins, patterns of the symbols that it has."""
    return _policy().plugins


@functools.cache
def stable_abi() -> dict[str, tuple[int, int]]:
    """Return the symbols of Python's stable ABI, with the release that first has each."""
    table = read_table(__package__, "stable_abi.toml", dict[str, str])
    return {name: _version(release) for release, names in table.items() for name in names.split()}


def _version(release: str) -> tuple[int, int]:
    major, minor = map(int, release.split("."))
    return major, minor


def unversioned_symbols(soname: str) -> tuple[str, ...] | None:
    """Return patterns of the symbols without versions that a library of the policy defines; None for any other."""
    for pattern, symbols in _policy().symbols.items():
        if fnmatchcase(soname, pattern):
            return symbols
    return () if any(fnmatchcase(soname, pattern) for pattern in _patterns()) else None


def defines_by_default(soname: str, symbol: str) -> bool:
    """Return whether a library of the system, or what that loads, gives a symbol a default version.

    A reference without a version binds to it. No is the answer for libraries that are not of the system.
    """
    if not any(fnmatchcase(soname, pattern) for pattern in _patterns()):
        return False
    return any(_defines(name, symbol) for name in (soname, *_symbols().brings.get(soname, ()), *_LOADED_BY_ALL))


_LOADED_BY_ALL = ("libc.so.6", "ld-linux-x86-64.so.2")


def _defines(soname: str, symbol: str) -> bool:
    names, patterns = _default_symbols(soname)
    return symbol in names or patterns.match(symbol) is not None


@functools.cache
def _symbols() -> _Symbols:
    return read_table(__package__, "system_symbols.toml", _Symbols)


@functools.cache
def _default_symbols(soname: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """Return what a library gives a default version: names, and an expression for the others."""
    words = _symbols().names.get(soname, "").split()
    patterns = [word for word in words if any(mark in word for mark in "*?[")]
    return frozenset(words) - set(patterns), re.compile("|".join(map(translate, patterns)) or r"(?!)")
