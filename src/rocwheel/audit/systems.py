"""The libraries of the operating system: those that a policy allows, or those of this machine (``ldconfig(8)``)."""

from __future__ import annotations

import functools
import struct
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.loader import Library
from rocwheel.errors import InputError
from rocwheel.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.disks import FileSystem

__all__ = [
    "AllowedLibraries",
    "HostLibraries",
    "interpreter_symbols",
    "read_loader_cache",
    "system_library_patterns",
    "unversioned_symbols",
]

_CACHE = Path("/etc/ld.so.cache")
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sII20x")
_ENTRY = struct.Struct("<iIIIQ")
# FLAG_ELF_LIBC6 with the architecture's bits, as in glibc's sysdeps/generic/ldconfig.h.
_CACHE_FLAGS = {62: 0x0303, 183: 0x0A03}
_DEFAULT_FOLDERS = {
    62: ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    183: ("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
}


class AllowedLibraries:
    """What every supported system has, by patterns of SONAMEs; nothing is known of the files."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)

    def find(self, name: str, machine: int) -> Library | None:  # noqa: ARG002 (the protocol's)
        """Return a library that stands for any allowed one of that name."""
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return Library(name, f"system:{name}", None)
        return None


class HostLibraries:
    """This machine's: the loader's cache, then its default folders."""

    def __init__(self, disk: FileSystem, cache: Path = _CACHE) -> None:
        self._disk = disk
        self._cache = {machine: read_loader_cache(cache, machine) for machine in _CACHE_FLAGS}

    def find(self, name: str, machine: int) -> Library | None:
        """Return the library that this machine's loader takes for ``name``."""
        cached = self._cache.get(machine, {}).get(name)
        if cached and (library := self._disk.find(cached, machine)):
            return library
        folders = _DEFAULT_FOLDERS.get(machine, ())
        found = (self._disk.find(f"{folder}/{name}", machine) for folder in folders)
        return next((library for library in found if library), None)


def read_loader_cache(path: Path, machine: int) -> dict[str, str]:
    """Read ``/etc/ld.so.cache``: SONAME to path, for the libraries of a machine; empty when there is no cache.

    The format is that of glibc 2.3 and later: a header of 48 bytes, entries of 24 bytes, strings by their offset in the
    file. Raises `InputError` for a file of another format.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    try:
        magic, count, _ = _HEADER.unpack_from(data)
        entries = [_ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size) for index in range(count)]
    except struct.error as e:
        raise InputError(path, "a truncated loader cache", remedy="Run ldconfig.") from e
    if magic != _MAGIC:
        raise InputError(path, f"begins with {magic!r}", expected=repr(_MAGIC), remedy="Run ldconfig.")
    wanted = _CACHE_FLAGS.get(machine)
    found: dict[str, str] = {}
    for flags, key, value, _, hardware in entries:
        if flags == wanted and not hardware:
            found.setdefault(_string(data, key), _string(data, value))
    return found


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode(errors="replace")


class _Interpreter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    symbols: tuple[str, ...]
    math: tuple[str, ...]


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    libraries: dict[str, tuple[str, ...]]
    symbols: dict[str, tuple[str, ...]]
    interpreter: _Interpreter


@functools.cache
def _policy() -> _Policy:
    return read_table("rocwheel.audit", "system_libraries.toml", _Policy)


def system_library_patterns() -> tuple[str, ...]:
    """Return the SONAME patterns that the policy beside this module allows."""
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
    return () if any(fnmatchcase(soname, pattern) for pattern in system_library_patterns()) else None
