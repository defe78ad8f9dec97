"""Code in kpack archives, unit by unit: what runtimes find for each key of an archive, or each wrapper of a library."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.wrappers import is_host_file
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import (
    KERNEL_LIMIT,
    KpackArchive,
    KpackEntry,
    iter_kernel,
    read_archive,
    read_kernel,
    read_kernel_head,
)
from rocwheel.binary.kpack.markers import SplitUnit, find_archives, read_split_library
from rocwheel.core.errors import RocwheelError
from rocwheel.wheels.binaries import Binary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.device.reading.kpack.given_archives import Beside

__all__ = ["CodeUnit", "KpackCode", "StoredCode", "Way", "each_once", "kpack_archive_code", "open_kpack_code"]


class StoredCode(NamedTuple):
    """A code object of an archive, under one of its keys; ``data`` are the archive's bytes."""

    data: Data
    archive: KpackArchive
    entry: KpackEntry

    @property
    def identity(self) -> tuple[str, int]:
        """What is the same for all keys of one code object."""
        return self.archive.name, self.entry.ordinal

    def pieces(self) -> Iterator[Data]:
        """Yield the code in pieces; raises `KpackError` for damage."""
        return iter_kernel(self.data, self.archive, self.entry)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the code; raises `KpackError` for damage."""
        return read_kernel_head(self.data, self.archive, self.entry, size)

    def read(self, limit: int = KERNEL_LIMIT) -> memoryview:
        """Return the code; raises `KpackError` for damage, and for more than ``limit`` bytes."""
        return read_kernel(self.data, self.archive, self.entry, limit=min(limit, KERNEL_LIMIT))


class Way(NamedTuple):
    """How a marker leads to an archive: by which of its paths, and with which target in the placeholder, if any."""

    archive: str
    path: int
    target: str


class CodeUnit(NamedTuple):
    """What is looked up by one key: the code for each target, the most specific targets first.

    For a library, ``wrapper`` is the first wrapper that asks for it. ``archives`` are those archives that its marker
    names and that exist, and ``ways`` say how the marker leads to each.
    """

    key: str
    codes: tuple[StoredCode, ...]
    archives: tuple[str, ...]
    wrapper: SplitUnit | None = None
    ways: tuple[Way, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that there is code for, as they are spelled."""
        return tuple(dict.fromkeys(code.entry.target for code in self.codes))


class KpackCode(msgspec.Struct, frozen=True):
    """The code of an archive, or of a split library with the archives that were found."""

    units: tuple[CodeUnit, ...]
    archives: tuple[KpackArchive, ...]
    wrappers: tuple[SplitUnit, ...] = ()
    problems: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Of a library, the archives that can't be read, each for one of the problems."""

    @property
    def is_library(self) -> bool:
        """Whether this is the code of a library, not of one archive."""
        return bool(self.wrappers)


@contextmanager
def open_kpack_code(
    data: Data, *, name: str, folder: Path | None, beside: Beside | None = None
) -> Iterator[KpackCode | None]:
    """Yield the code of the file ``name`` if that is an archive or a split library; none otherwise.

    Archives are looked for from ``folder``, in which the library is, and among those that are given ``beside`` it. An
    archive that can't be read is among the problems of a library. Raises `InputError` for a damaged archive or library.
    """
    if is_kpack(data):
        yield kpack_archive_code(data, read_archive(data, name=name))
        return
    split = read_split_library(data, name=name) if is_host_file(data) else None
    if split is None:
        yield None
        return
    with ExitStack() as stack:
        yield _follow(split.units, _Opener(folder, beside, stack))


def kpack_archive_code(data: Data, archive: KpackArchive) -> KpackCode:
    """Return the code of one archive, whose bytes are ``data``."""
    keys = dict.fromkeys(entry.key for entry in archive.entries)
    codes: dict[str, list[StoredCode]] = {key: [] for key in keys}
    for entry in archive.entries:
        codes[entry.key].append(StoredCode(data, archive, entry))
    units = tuple(CodeUnit(key, _in_order(found), (archive.name,)) for key, found in codes.items())
    return KpackCode(units, (archive,), problems=archive.problems)


def _follow(wrappers: Sequence[SplitUnit], opener: _Opener) -> KpackCode:
    units = {}
    for wrapper in wrappers:
        key = (f"{wrapper.marker.kernel_name}#{wrapper.index}", wrapper.marker.search_paths)
        if key not in units:
            units[key] = opener.unit(wrapper)
    archives = tuple(archive for opened in opener.opened.values() if opened for _, archive in [opened])
    problems = opener.problems
    return KpackCode(tuple(units.values()), archives, tuple(wrappers), tuple(problems.values()), tuple(problems))


class _Opener:
    """Opens each archive once, and keeps it open as long as ``stack`` is."""

    def __init__(self, folder: Path | None, beside: Beside | None, stack: ExitStack) -> None:
        self.folder, self.beside, self.stack = folder, beside, stack
        self.opened: dict[str, tuple[Data, KpackArchive] | None] = {}
        self.problems: dict[str, str] = {}
        self._found: dict[str, tuple[tuple[Binary, str], ...]] = {}

    def unit(self, wrapper: SplitUnit) -> CodeUnit:
        """Return the code that there is for a wrapper."""
        marker = wrapper.marker
        found = [(number, file) for number, path in enumerate(marker.search_paths) for file in self._find(path)]
        files = {file.name: file for _, (file, _) in found}
        archives = [opened for opened in map(self._open, files.values()) if opened]
        ways = [Way(opened[1].name, n, target) for n, (file, target) in found if (opened := self._open(file))]
        key = f"{marker.kernel_name}#{wrapper.index}"
        codes = [
            StoredCode(data, archive, entry)
            for data, archive in archives
            for target in archive.targets
            if (entry := archive.find(marker.kernel_name, wrapper.index, target))
        ]
        names = tuple(archive.name for _, archive in archives)
        return CodeUnit(key, _in_order(codes), names, wrapper, tuple(ways))

    def _find(self, search_path: str) -> tuple[tuple[Binary, str], ...]:
        """Return the archives that a search path leads to, each with its target: those installed, then those given."""
        if search_path not in self._found:
            installed = find_archives(self.folder, search_path) if self.folder is not None else ()
            known = [file.path for file in installed]
            given = self.beside.find(search_path, known) if self.beside is not None else ()
            self._found[search_path] = (*((Binary(str(file.path), "", 0), file.target) for file in installed), *given)
        return self._found[search_path]

    def _open(self, found: Binary) -> tuple[Data, KpackArchive] | None:
        if found.name not in self.opened:
            try:
                data = self.stack.enter_context(found.view())
                self.opened[found.name] = data, read_archive(data, name=found.name)
            except RocwheelError as e:
                self.opened[found.name] = None
                self.problems[found.name] = str(e)
        return self.opened[found.name]


def each_once(codes: Iterable[StoredCode]) -> tuple[StoredCode, ...]:
    """Return each code object once, under its least specific target; the most specific ones come first.

    Of several for one target, the first is the one that runtimes take.
    """
    by_target: dict[str, StoredCode] = {}
    for stored in codes:
        by_target.setdefault(stored.entry.target, stored)
    return tuple({stored.identity: stored for stored in by_target.values()}.values())


def _in_order(codes: Sequence[StoredCode]) -> tuple[StoredCode, ...]:
    """Sort code by how many features its target names, the most first, as runtimes look for it."""
    return tuple(sorted(codes, key=lambda code: -code.entry.target.count(":")))
