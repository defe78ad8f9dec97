"""The facts about the device code of one file, as plain values that JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ArchiveFacts", "BundleFacts", "DeviceFacts", "EntryFacts", "KpackFacts", "UnitFacts"]


class EntryFacts(msgspec.Struct, frozen=True):
    """An entry of a bundle or an archive, an image in an object file, or a code object by itself; sizes in bytes.

    ``stored_size`` is what it takes in the file. That and ``kernels`` are none when the bundle wasn't decompressed.
    """

    id: str
    target: str
    size: int
    stored_size: int | None
    kernels: int | None = None
    is_shared: bool = False
    """Whether an entry before it is the same code object of a kpack archive, under another target."""


class BundleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle: where it is in the file, its size there and decompressed, in bytes; version 0 is a plain one."""

    number: int
    offset: int
    size: int
    raw_size: int
    version: int
    method: str
    hosts: tuple[EntryFacts, ...]
    """The (empty) entries for the host, of the target ``host``; they come first in bundles of all known writers."""
    entries: tuple[EntryFacts, ...]


class UnitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapper of a split library: its file offset, the key it is looked up by, and where archives are looked for."""

    offset: int
    key: str
    search_paths: tuple[str, ...]


class ArchiveFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A kpack archive: what it says of itself, and how many code objects it has."""

    path: str
    scheme: str
    group: str
    family: str
    targets: tuple[str, ...]
    code_objects: int


class KpackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The archives that code is in: the file itself, or those that were found for the wrappers of a split library."""

    keys: tuple[str, ...]
    """What runtimes look up, each once: the keys of an archive, or those of a library's wrappers."""
    archives: tuple[ArchiveFacts, ...]
    wrappers: tuple[UnitFacts, ...] = ()


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The device code of one file. ``entries`` are those outside of bundles: a code object by itself, or images."""

    container: str
    wrappers: int = 0
    bundles: tuple[BundleFacts, ...] = ()
    entries: tuple[EntryFacts, ...] = ()
    problems: tuple[str, ...] = ()
    kpack: KpackFacts | None = None
    """What is said of kpack archives; ``entries`` are the code objects in them then."""

    @property
    def size(self) -> int:
        """Size of all device code in the file, in bytes."""
        stored = (entry.size if entry.stored_size is None else entry.stored_size for entry in self._each_once)
        return sum(bundle.size for bundle in self.bundles) + sum(stored)

    @property
    def raw_size(self) -> int:
        """Size of all device code when decompressed, in bytes."""
        return sum(bundle.raw_size for bundle in self.bundles) + sum(entry.size for entry in self._each_once)

    @property
    def groups(self) -> tuple[tuple[EntryFacts, ...], ...]:
        """The entries of each bundle, or under each key of kpack archives; last, those outside of bundles, together."""
        bundles = tuple(bundle.entries for bundle in self.bundles)
        if self.kpack is None:
            return (*bundles, self.entries) if self.entries else bundles
        by_key: dict[str, list[EntryFacts]] = {key: [] for key in self.kpack.keys}
        for entry in self.entries:
            by_key[entry.id].append(entry)
        return tuple(map(tuple, by_key.values()))

    @property
    def _each_once(self) -> Iterator[EntryFacts]:
        return (entry for entry in self.entries if not entry.is_shared)
