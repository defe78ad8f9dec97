"""Finds the code for a split library's units in kpack archives, as runtimes do, and reports inconsistencies.

A host wheel and its device wheels are installed into one folder. The same is true of the folders of a split tree.

AMD's runtime looks up a GPU's own target, and then the generic target that covers the GPU. It looks up each target with
all features of the GPU, then with fewer, and finally with no features. A path's placeholder represents only these
targets: an archive that is named for another target is never opened. For each of these targets, the runtime searches
the archives that list it.

AMD's tool from mid-2026 numbers units in each archive and skips units without the archive's target. Wrappers, in
contrast, number all units. So if an archive lacks a unit, other units in the archive have incorrect indices, and a GPU
gets the wrong kernels, or no kernels. In that case, kernel names identify the unit of each code object, as long as
complete archives have all of these kernels.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.code_objects import CodePlace, TargetId, parse_target_id, processor_of
from rocwheel.binary.kernel_metadata import kernel_names
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
from rocwheel.binary.kpack.markers import SplitUnit, find_archives, find_split_library, match_units, target_at
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count
from rocwheel.targets.catalog import load_catalog, sort_key
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.binaries import Binary, installed_place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.kpack.archive import KpackEntry
    from rocwheel.core.reading import Data


_SUFFIX = ".kpack"


class _Wanted(NamedTuple):
    """The required path of archives: a path below the combined root, or only its end if the start is unknown."""

    place: str
    is_whole: bool

    def target_of(self, binary: Binary) -> str | None:
        """Return the target for which a runtime would open ``binary`` (see `target_at`), or `None` for other files."""
        if not binary.place:
            return target_at(posixpath.basename(self.place), Path(binary.name).name)
        place = _place(binary)
        if not self.is_whole:
            place = "/".join(place.split("/")[-self.place.count("/") - 1 :])
        return target_at(self.place, place)


class GivenArchives:
    """The archives in ``found``, recognized by their names; the caller reports damaged archives."""

    def __init__(self, found: Iterable[Binary | InputError]) -> None:
        self._binaries = [b for b in found if not isinstance(b, InputError) and is_named_archive(b)]

    def holds(self, name: str) -> bool:
        """Return whether the archive ``name``, or the archive at a resolved path, is one of the given archives."""
        return any(
            binary.name == name or (binary.member is None and str(Path(binary.name).resolve()) == name)
            for binary in self._binaries
        )

    def beside(self, library: Binary) -> ArchiveLookup:
        """Return a lookup for the archives that the markers of ``library`` refer to."""
        return ArchiveLookup(self._binaries, library)


class ArchiveLookup(NamedTuple):
    """Archives that were passed together with a library."""

    archives: Sequence[Binary]
    library: Binary

    def find(self, search_path: str, known: Collection[Path]) -> Iterator[tuple[Binary, str]]:
        """Yield the archives that one of the library's search paths refers to, each with its target.

        Files in ``known`` are omitted. The target has the form that `target_at` returns.
        """
        folder = posixpath.dirname(_place(self.library))
        place = posixpath.normpath(posixpath.join(folder, search_path))
        parts = place.split("/")
        kept = [part for part in parts if part != ".."]
        wanted = _Wanted("/".join(kept), is_whole=bool(self.library.place) and len(kept) == len(parts))
        for binary in self.archives:
            is_known = binary.member is None and Path(binary.name).resolve() in known
            target = None if is_known else wanted.target_of(binary)
            if target is not None:
                yield binary, target


def is_named_archive(binary: Binary) -> bool:
    """Return whether a file name ends with an archive suffix."""
    return binary.name.endswith(_SUFFIX)


def _place(binary: Binary) -> str:
    return binary.place if binary.member is None else installed_place(binary.place)


class SearchedArchive(NamedTuple):
    """An archive that a marker refers to, with its search path number and the target in the placeholder, if any."""

    archive: KpackArchive
    path: int
    target: str


class LookupResult(NamedTuple):
    """The result for a GPU: code for ``target``, an archive that lists ``target`` but lacks the unit, or nothing.

    A runtime that finds nothing skips the GPU. If an archive lacks the unit, the runtime rejects all GPUs.
    """

    target: TargetId | None = None
    lacking: KpackArchive | None = None
    stored: tuple[str, int] | None = None
    """The name of the archive with the code, and the code's ordinal in the archive."""

    @property
    def code(self) -> TargetId | None:
        """The target of the code, or `None` if there is no code."""
        return self.target if self.lacking is None else None


class UnitLookup(NamedTuple):
    """A wrapper and the existing archives that its marker refers to."""

    wrapper: SplitUnit
    archives: tuple[SearchedArchive, ...]

    @property
    def key(self) -> str:
        """The lookup key in archives."""
        return f"{self.wrapper.marker.kernel_name}#{self.wrapper.index}"

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets that any archive has code for."""
        return _read_targets(
            (target, searched)
            for searched in self.archives
            for target in searched.archive.targets
            if self._entry(searched.archive, target) is not None
        )

    @property
    def listed(self) -> tuple[TargetId, ...]:
        """The targets that the archives list or are named for, with or without code for this wrapper."""
        return _read_targets((t, s) for s in self.archives for t in (*s.archive.targets, s.target) if t)

    def find(self, gpu: TargetId, *, stops: bool = False) -> LookupResult:
        """Return the code that a runtime finds for ``gpu``, which has a setting for every relevant feature.

        With ``stops``, the search ends at the first archive that lists a target.
        """
        asked = tuple(_asked(gpu))
        # The archives that a runtime opens, in the runtime's order: sorted by search path, and then by target.
        order = {str(target): number for number, target in enumerate(asked)} | {"": 0}
        named = [searched for searched in self.archives if searched.target in order]
        named.sort(key=lambda searched: (searched.path, order[searched.target]))
        opened = [searched.archive for searched in named]
        lacking = LookupResult()
        for target in asked:
            for archive in opened:
                if str(target) not in archive.targets:
                    continue
                entry = self._entry(archive, str(target))
                if entry is not None:
                    return LookupResult(target, stored=(archive.name, entry.ordinal))
                lacking = lacking if lacking.lacking else LookupResult(target, archive)
                if stops:
                    return lacking
        return lacking

    def _entry(self, archive: KpackArchive, target: str) -> KpackEntry | None:
        return archive.find(self.wrapper.marker.kernel_name, self.wrapper.index, target)


def _asked(gpu: TargetId) -> Iterator[TargetId]:
    """Yield the targets that a runtime looks up for ``gpu``, in the runtime's order."""
    for name in (gpu.processor, *load_catalog().generics_of(gpu.processor)):
        settings = [(gpu.sramecc, gpu.xnack), (gpu.sramecc, None), (None, gpu.xnack), (None, None)]
        yield from dict.fromkeys(TargetId(name, sramecc, xnack) for sramecc, xnack in settings)


def _read_targets(spellings: Iterable[tuple[str, SearchedArchive]]) -> tuple[TargetId, ...]:
    """Parse the targets in archives, without duplicates; raise `InputError` for an invalid target."""
    first = {spelling: searched.archive.name for spelling, searched in reversed(list(spellings))}
    targets = [parse_target_id(spelling, source=name) for spelling, name in reversed(first.items())]
    return tuple(target for target in targets if target.processor.startswith("gfx"))


class StoredCode(NamedTuple):
    """A code object in an archive, under one of its keys; ``data`` contains the archive."""

    data: Data
    archive: KpackArchive
    entry: KpackEntry

    @property
    def identity(self) -> tuple[str, int]:
        """A value that is the same for all keys of one code object."""
        return self.archive.name, self.entry.ordinal

    def pieces(self) -> Iterator[Data]:
        """Yield the code in pieces; raise `KpackError` if the code is damaged."""
        return iter_kernel(self.data, self.archive, self.entry)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the code; raise `KpackError` if the code is damaged."""
        return read_kernel_head(self.data, self.archive, self.entry, size)

    def read(self, limit: int = KERNEL_LIMIT) -> memoryview:
        """Return the code; raise `KpackError` if it is damaged or has more than ``limit`` bytes."""
        return read_kernel(self.data, self.archive, self.entry, limit=min(limit, KERNEL_LIMIT))


class CodeUnit(NamedTuple):
    """The code under one key for each target, most specific targets first.

    For a library, ``wrapper`` is the first wrapper with this key. ``archives`` are the existing archives that the
    marker refers to, and ``searched`` records how the marker refers to each archive.
    """

    key: str
    codes: tuple[StoredCode, ...]
    archives: tuple[str, ...]
    wrapper: SplitUnit | None = None
    searched: tuple[SearchedArchive, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets with code, as written in the archives."""
        return tuple(dict.fromkeys(code.entry.target for code in self.codes))


class KpackCode(msgspec.Struct, frozen=True):
    """The code in an archive, or in a split library and the archives that were found for it."""

    units: tuple[CodeUnit, ...]
    archives: tuple[KpackArchive, ...]
    wrappers: tuple[SplitUnit, ...] = ()
    problems: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """For a library, the unreadable archives. Each archive has one entry in ``problems``."""

    @property
    def is_library(self) -> bool:
        """Whether the code belongs to a library rather than to a single archive."""
        return bool(self.wrappers)


@contextmanager
def open_kpack_code(
    data: Data, *, name: str, folder: Path | None, beside: ArchiveLookup | None = None
) -> Iterator[KpackCode | None]:
    """Yield the code of the file ``name`` if it is an archive or a split library, or `None` otherwise.

    A library's archives are looked up relative to its ``folder``, and among the archives ``beside`` it. An unreadable
    archive of a library is reported as a problem. Raises `InputError` for a damaged archive or library.
    """
    if is_kpack(data):
        archive = read_archive(data, name=name)
        codes: dict[str, list[StoredCode]] = defaultdict(list)
        for entry in archive.entries:
            codes[entry.key].append(StoredCode(data, archive, entry))
        units = tuple(CodeUnit(key, _in_order(found), (archive.name,)) for key, found in codes.items())
        yield KpackCode(units, (archive,), problems=archive.problems)
        return
    split = find_split_library(data, name=name)
    if split is None:
        yield None
        return
    with ExitStack() as stack:
        yield _follow(split.units, _Opener(folder, beside, stack))


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
    """Opens each archive once, and keeps it open until ``stack`` is closed."""

    def __init__(self, folder: Path | None, beside: ArchiveLookup | None, stack: ExitStack) -> None:
        self.folder, self.beside, self.stack = folder, beside, stack
        self.opened: dict[str, tuple[Data, KpackArchive] | None] = {}
        self.problems: dict[str, str] = {}
        self._found: dict[str, tuple[tuple[Binary, str], ...]] = {}

    def unit(self, wrapper: SplitUnit) -> CodeUnit:
        """Return the code that is available for a wrapper."""
        marker = wrapper.marker
        found = [(number, file) for number, path in enumerate(marker.search_paths) for file in self._find(path)]
        files = {file.name: file for _, (file, _) in found}
        archives = [opened for opened in map(self._open, files.values()) if opened]
        searched = [
            SearchedArchive(opened[1], number, target)
            for number, (file, target) in found
            if (opened := self._open(file))
        ]
        key = f"{marker.kernel_name}#{wrapper.index}"
        codes = [
            StoredCode(data, archive, entry)
            for data, archive in archives
            for target in archive.targets
            if (entry := archive.find(marker.kernel_name, wrapper.index, target))
        ]
        names = tuple(archive.name for _, archive in archives)
        return CodeUnit(key, _in_order(codes), names, wrapper, tuple(searched))

    def _find(self, search_path: str) -> tuple[tuple[Binary, str], ...]:
        """Return the archives for a search path, each with its target. Installed archives come first."""
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
    """Return each code object once, under its least specific target, with the most specific targets first.

    If a target has several code objects, runtimes use the first.
    """
    by_target: dict[str, StoredCode] = {}
    for stored in codes:
        by_target.setdefault(stored.entry.target, stored)
    return tuple({stored.identity: stored for stored in by_target.values()}.values())


def _in_order(codes: Sequence[StoredCode]) -> tuple[StoredCode, ...]:
    """Sort code by the number of features in its target, most features first, in the search order of runtimes."""
    return tuple(sorted(codes, key=lambda code: -code.entry.target.count(":")))


class NamedArchive(NamedTuple):
    """An archive that a library's markers refer to, its bytes, and the keys that wrappers look up in the archive."""

    data: Data
    archive: KpackArchive
    wanted: frozenset[str]


class UnitFault(msgspec.Struct, frozen=True):
    """The faults in one of a library's archives."""

    archive: str
    lacking: tuple[str, ...]
    """The keys that wrappers look up but that the archive lacks, sorted by index."""
    owners: dict[str, str]
    """For code objects under a wrong key: the key of the correct unit, keyed by the stored key."""
    is_clear: bool
    """Whether the kernels identify the unit of each code object."""


def find_unit_faults(archives: Sequence[NamedArchive], binaries: Iterable[str]) -> tuple[UnitFault, ...]:
    """Return the faults in the ``archives`` of a library with the kernel names ``binaries``.

    Code is read only if units are missing. Raises `KpackError` and `DeviceCodeError` for damaged code.
    """
    names = frozenset(binaries)
    stored = {named.archive.name: _by_key(named.archive, names) for named in archives}
    faulty = [named for named in archives if not named.wanted <= stored[named.archive.name].keys()]
    if not faulty:
        return ()
    reference: dict[str, frozenset[str]] = {}
    for named in archives:
        if named not in faulty:
            own = stored[named.archive.name]
            reference |= _kernels(named, {key: own[key] for key in named.wanted - reference.keys()})
    return tuple(_fault(named, stored[named.archive.name], reference) for named in faulty)


def _fault(named: NamedArchive, stored: Mapping[str, KpackEntry], reference: Mapping[str, frozenset[str]]) -> UnitFault:
    owners = match_units(_kernels(named, stored), reference)
    lacking = sorted(named.wanted - stored.keys(), key=lambda key: (len(key), key))
    wrong = {key: owner for key, owner in (owners or {}).items() if owner != key}
    return UnitFault(named.archive.name, tuple(lacking), wrong, is_clear=owners is not None)


def _by_key(archive: KpackArchive, binaries: frozenset[str]) -> dict[str, KpackEntry]:
    """Return one code object from an archive for each of the library's units, under its key in the archive."""
    found: dict[str, KpackEntry] = {}
    for entry in archive.entries:
        if entry.binary in binaries and entry.index is not None:
            found.setdefault(entry.key, entry)
    return found


def _kernels(named: NamedArchive, entries: Mapping[str, KpackEntry]) -> dict[str, frozenset[str]]:
    """Return the kernel names in each code object that has kernels."""
    kernels = {
        key: kernel_names(
            read_kernel(named.data, named.archive, entry), place=CodePlace(named.archive.name, entry.offset)
        )
        for key, entry in entries.items()
    }
    return {key: names for key, names in kernels.items() if names}


def find_inconsistencies(name: str, code: KpackCode) -> tuple[str, ...]:
    """Return the problems that runtimes have with the archives of the library ``name``, or with a single archive.

    Code objects are decompressed only if some targets lack units.
    """
    wrong = _wrong_indices(code) if code.is_library else ()
    return (*_missing_archives(name, code), *_misnamed_archives(code), *_missing_code(name, code), *wrong)


def _missing_archives(name: str, code: KpackCode) -> Iterator[str]:
    if code.is_library and not any(unit.archives for unit in code.units) and not code.problems:
        paths = dict.fromkeys(path for wrapper in code.wrappers for path in wrapper.marker.search_paths)
        yield f"{name}: the code is in kpack archives that don't exist: {', '.join(paths)}"


def _misnamed_archives(code: KpackCode) -> Iterator[str]:
    """Yield a problem for each archive that runtimes open for only one GPU, but that has no code for that GPU."""
    named = {(s.archive.name, s.path, s.target): s.archive for unit in code.units for s in unit.searched if s.target}
    for (name, _, target), archive in named.items():
        if processor_of(target) not in archive.processors:
            listed = ", ".join(sorted(archive.processors, key=sort_key))
            yield f"{name}: is named for {target}, but lists {listed}, so runtimes never find its code"


def _missing_code(name: str, code: KpackCode) -> Iterator[str]:
    """Yield a problem for each target that an archive lists without code for all units. Runtimes then give up."""
    listed = {archive.name: archive.targets for archive in code.archives}
    lacking: dict[str, list[str]] = defaultdict(list)
    for unit in code.units:
        for target in dict.fromkeys(target for archive in unit.archives for target in listed[archive]):
            if target not in unit.targets:
                lacking[target].append(unit.key)
    for target in sorted(lacking, key=text_sort_key):
        keys = lacking[target]
        units = f"{keys[0]} and {count(len(keys) - 1, 'other key')}" if len(keys) > 1 else keys[0]
        yield (
            f"{name}: no code for {target} under {units}, but an archive lists the target: runtimes reject the "
            "library on this GPU, and some runtimes reject it on every GPU"
        )


def _wrong_indices(code: KpackCode) -> Iterator[str]:
    """Yield a problem for code in a split library that is stored under another unit's index."""
    stored = {codes.archive.name: codes for unit in code.units for codes in unit.codes}
    archives = [
        NamedArchive(codes.data, codes.archive, frozenset(unit.key for unit in code.units if name in unit.archives))
        for name, codes in sorted(stored.items())
    ]
    try:
        faults = find_unit_faults(archives, (wrapper.marker.kernel_name for wrapper in code.wrappers))
    except InputError as e:
        yield str(e)
        return
    for fault in faults:
        for key, owner in fault.owners.items():
            targets = dict.fromkeys(e.target for e in stored[fault.archive].archive.entries if e.key == key)
            yield (
                f"{fault.archive}: the code stored as {key} for {', '.join(targets)} belongs to {owner}: some "
                "releases of AMD's tool number units separately for each target"
            )
