"""This machine's files and libraries, for the loader model to be compared with the loader itself (``ldconfig(8)``)."""

from __future__ import annotations

import struct
from pathlib import Path

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.binary.kind import is_elf
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.environment.loader import FOLDER, Library, LoaderStop, Obstacle, find_obstacle

__all__ = ["FileSystem", "HostLibraries", "read_loader_cache"]

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


class FileSystem:
    """The machine's file system; what was read once is remembered."""

    def __init__(self) -> None:
        self._files: dict[str, Elf | None] = {}

    def find(self, path: str, machine: int) -> Library | LoaderStop | None:
        """Return the ELF file of ``machine`` at a path."""
        obstacle = _obstacle(Path(path))
        if obstacle is not None and obstacle.stops(machine):
            return LoaderStop(path, obstacle.reason)
        library = self.open(Path(path))
        if library is None or library.elf is None or library.elf.machine != machine:
            return None
        return library

    def has_name(self, name: str) -> bool:  # noqa: ARG002 (required by the protocol)
        """Return that any name may be there."""
        return True

    def open(self, path: Path) -> Library | None:
        """Return the ELF file at a path, whatever its machine; none where there is no usable one."""
        try:
            status = path.stat()
        except OSError:
            return None
        identity = f"{status.st_dev}:{status.st_ino}"
        if identity not in self._files:
            self._files[identity] = _read(path)
        elf = self._files[identity]
        return None if elf is None else Library(str(path), identity, elf)


def _obstacle(path: Path) -> Obstacle | None:
    if path.is_dir():
        return FOLDER
    if not path.exists():
        return None
    with path.open("rb") as file:
        return find_obstacle(file.read(64))


def _read(path: Path) -> Elf | None:
    try:
        with FileRange.whole(path).view() as data:
            return read_elf(data, name=str(path)) if is_elf(data) else None
    except InputError:
        return None


class HostLibraries:
    """This machine's: the loader's cache, then its default folders."""

    def __init__(self, disk: FileSystem, cache: Path = _CACHE) -> None:
        self._disk = disk
        self._cache = {machine: read_loader_cache(cache, machine) for machine in _CACHE_FLAGS}

    def find(self, name: str, machine: int) -> Library | None:
        """Return the library that this machine's loader takes for ``name``."""
        cached = self._cache.get(machine, {}).get(name)
        folders = _DEFAULT_FOLDERS.get(machine, ())
        paths = [*([cached] if cached else []), *(f"{folder}/{name}" for folder in folders)]
        found = (self._disk.find(path, machine) for path in paths)
        return next((library for library in found if isinstance(library, Library)), None)


def read_loader_cache(path: Path, machine: int) -> dict[str, str]:
    """Read ``/etc/ld.so.cache``: SONAME to path, for the libraries of a machine; empty when there is no cache.

    The format is that of glibc 2.3 and later: a header of 48 bytes, entries of 24 bytes, strings by their offset in the
    file. Of entries for some processors alone (``hwcaps``) none is taken.
    """
    if not path.exists():
        return {}
    data = path.read_bytes()
    magic, count, _ = _HEADER.unpack_from(data)
    assert magic == _MAGIC, magic
    entries = (_ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size) for index in range(count))
    found: dict[str, str] = {}
    for flags, key, value, _, hardware in entries:
        if flags == _CACHE_FLAGS.get(machine) and not hardware:
            found.setdefault(_string(data, key), _string(data, value))
    return found


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode(errors="replace")
