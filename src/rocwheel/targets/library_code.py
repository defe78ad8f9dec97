"""Which GPUs a library serves, wherever its code lies: in the file itself, in kpack archives, in a folder of kernels.

Every command that answers for a library asks here. Files are given by their places, as if wheels were installed into
one folder and folders were laid over each other.

A split library asks archives for its code. AMD's runtime asks for a GPU's own target, then for the generic one that
covers it, each with all features of the GPU, with fewer, and at last without any. The placeholder of a path stands for
these alone: an archive that is named for another target is never opened. For each of them in turn, the runtime looks
into the archives that list it.

Some libraries open a folder of kernels, too, such as ``rocblas/library``. The table of kernel files says which.
"""

from __future__ import annotations

import enum
import fnmatch
import glob
import posixpath
import re
from bisect import bisect_left
from collections import defaultdict
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.fat_binary import is_host_file
from rocwheel.binary.code_objects.target_id import BundleEntryId, TargetId, parse_target_id
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import KpackArchive, read_archive
from rocwheel.binary.kpack.search import target_at
from rocwheel.binary.kpack.split_library import SplitUnit, read_split_library
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.linking.known.sdk_names import is_sdk_package
from rocwheel.targets.catalog.catalog import Generic, load_catalog
from rocwheel.targets.compatibility import Fit, Runtime, covers, fit, settings_of
from rocwheel.targets.kernel_files.classify import find_family
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path
from rocwheel.targets.kernel_files.patterns import PathPattern, compile_patterns
from rocwheel.targets.kernel_files.table import Opener, Without, load_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data

__all__ = [
    "LAST_STOPPING_RELEASE",
    "CodeGap",
    "CodeTree",
    "FileCode",
    "Found",
    "KernelFolder",
    "KernelFolders",
    "Lookup",
    "Reach",
    "SearchedArchive",
    "opener_of",
    "read_file_code",
    "without_lost",
]

LAST_STOPPING_RELEASE = "7.14"
"""The last ROCm whose runtime looks into no further archive than the first that lists a target.

Later ones have ROCm/rocm-systems#9953. It is also the last one that hands the code for one GPU of a machine to all,
which ROCm/rocm-systems#9167 ended.
"""

# ----- archives of split libraries ------------------------------------------------------------------------------------


class SearchedArchive(NamedTuple):
    """An archive that a marker leads to: by which of its paths, and with which target in the placeholder, if any."""

    archive: KpackArchive
    path: int
    target: str


class Found(NamedTuple):
    """What a GPU gets: code for ``target``; or an archive that lists ``target`` and lacks the unit; or neither.

    A runtime that gets nothing passes the GPU over. At an archive that lacks the unit, it gives up on all GPUs.
    """

    target: TargetId | None = None
    lacking: KpackArchive | None = None

    @property
    def code(self) -> TargetId | None:
        """The target of the code, if there is any."""
        return self.target if self.lacking is None else None


class Lookup(NamedTuple):
    """A wrapper, and the archives that there are of the ones that its marker names."""

    wrapper: SplitUnit
    archives: tuple[SearchedArchive, ...]

    @property
    def key(self) -> str:
        """What is looked up in archives."""
        return f"{self.wrapper.marker.kernel_name}#{self.wrapper.index}"

    @property
    def targets(self) -> tuple[TargetId, ...]:
        """The targets that some archive has code for."""
        return _read_targets(
            (target, searched)
            for searched in self.archives
            for target in searched.archive.targets
            if self._has(searched.archive, target)
        )

    @property
    def listed(self) -> tuple[TargetId, ...]:
        """The targets that the archives list or are named for, whether they have code for this wrapper or not."""
        return _read_targets((t, s) for s in self.archives for t in (*s.archive.targets, s.target) if t)

    def find(self, gpu: TargetId, *, old: bool = False) -> Found:
        """Return what a runtime finds for ``gpu``, all of whose features are set as far as they matter.

        ``old`` ones, up to `LAST_STOPPING_RELEASE`, end at the first archive that lists a target.
        """
        asked = tuple(_asked(gpu))
        opened = self._opened(asked)
        lacking = Found()
        for target in asked:
            for archive in opened:
                if str(target) not in archive.targets:
                    continue
                if self._has(archive, str(target)):
                    return Found(target)
                lacking = lacking if lacking.lacking else Found(target, archive)
                if old:
                    return lacking
        return lacking

    def _opened(self, asked: Sequence[TargetId]) -> list[KpackArchive]:
        """Return the archives that a runtime opens, in its order: by their paths, then by the targets asked for."""
        order = {str(target): number for number, target in enumerate(asked)} | {"": 0}
        named = [searched for searched in self.archives if searched.target in order]
        named.sort(key=lambda searched: (searched.path, order[searched.target]))
        return [searched.archive for searched in named]

    def _has(self, archive: KpackArchive, target: str) -> bool:
        return archive.find(self.wrapper.marker.kernel_name, self.wrapper.index, target) is not None


def _asked(gpu: TargetId) -> Iterator[TargetId]:
    """Yield the targets that a runtime asks for on ``gpu``, in its order."""
    for name in (gpu.processor, *load_catalog().generics_of(gpu.processor)):
        settings = [(gpu.sramecc, gpu.xnack), (gpu.sramecc, None), (None, gpu.xnack), (None, None)]
        yield from dict.fromkeys(TargetId(name, sramecc, xnack) for sramecc, xnack in settings)


def _read_targets(spellings: Iterable[tuple[str, SearchedArchive]]) -> tuple[TargetId, ...]:
    """Return targets that archives spell, each once; raises `InputError` for what is none."""
    first = {spelling: searched.archive.name for spelling, searched in reversed(list(spellings))}
    targets = [parse_target_id(spelling, source=name) for spelling, name in reversed(first.items())]
    return tuple(target for target in targets if target.processor.startswith("gfx"))


# ----- folders of kernels ---------------------------------------------------------------------------------------------

_LIBRARY = re.compile(r"(?P<base>[^/]+?)(?:-[0-9a-f]{8}(?:[0-9a-f]{24})?)?\.(?P<kind>so|dll)(?:\.[0-9]+)*", re.ASCII)
"""The name of a library, with the hash that auditwheel (8 digits) or delvewheel (32) puts into it."""
_WORD = re.compile(r"gfx[0-9a-z]+(?:_[0-9]+)?")


def opener_of(path: str) -> Opener | None:
    """Return the row of a library that opens a folder of kernels, by its file name; none for other files."""
    match = _LIBRARY.fullmatch(posixpath.basename(path))
    return _openers().get((match["kind"], _folded(match["base"], match["kind"]))) if match else None


@cache
def _openers() -> dict[tuple[str, str], Opener]:
    found: dict[tuple[str, str], Opener] = {}
    for opener in load_table().openers:
        for name in opener.libraries:
            found["so", name] = opener
            for spelling in (name, name.removeprefix("lib")):  # DLLs have it with the prefix and without
                found["dll", _folded(spelling, "dll")] = opener
    return found


def _folded(name: str, kind: str) -> str:
    return name.lower() if kind == "dll" else name


class KernelFolder(msgspec.Struct, frozen=True):
    """The folder that a library opens, and what it has for which targets."""

    opener: Opener
    place: str
    index: frozenset[TargetId]
    """The targets that have an index."""
    is_merged: bool
    """Whether one index is for all targets."""
    code: frozenset[TargetId]
    """The targets that have kernels."""
    files: tuple[str, ...]
    """The places of all files that count."""

    @property
    def named(self) -> list[str]:
        """The processors that there are files for, sorted."""
        return sorted({target.processor for target in (*self.index, *self.code)})

    def find_lack(self, gpu: TargetId, runtime: Runtime = Runtime.STOCK) -> str:
        """Return what the folder lacks for a GPU, in words that follow "which"; empty if it lacks nothing.

        A kind of files counts only where the folder has such files for some target.
        """
        lacks_index = self.index and not self.is_merged and not any(_suits(one, gpu, runtime) for one in self.index)
        lacks_code = self.code and not any(_suits(one, gpu, runtime) for one in self.code)
        for lacking, what, found in ((lacks_index, "no index", self.index), (lacks_code, "no kernels", self.code)):
            if lacking:
                is_setting = any(target.processor == gpu.processor for target in found)
                others = sorted({str(target) if is_setting else target.processor for target in found})
                return f"has {what} for {gpu if is_setting else gpu.processor}, but has some for {first_of(others, 8)}"
        return ""

    def find_lack_of_code(self, target: TargetId) -> str:
        """Return what the folder lacks for all GPUs that code for ``target`` serves; empty if one has what it needs."""
        row = load_catalog().processors.get(target.processor)
        members = row.members if isinstance(row, Generic) else ()
        lacks = [self.find_lack(TargetId(name, **target.features)) for name in (target.processor, *members)]
        return lacks[0] if all(lacks) else ""


def _suits(named: TargetId, gpu: TargetId, runtime: Runtime) -> bool:
    """Return whether a library opens a file that is named for a target; what the GPU leaves open may be either."""
    if any(gpu.features.get(name, setting) != setting for name, setting in named.features.items()):
        return False
    code = TargetId(named.processor.removesuffix("-strict"))
    return fit(code, TargetId(gpu.processor), runtime) is not Fit.NONE


class KernelFolders:
    """The folders of kernels among files at ``places``."""

    def __init__(self, places: Iterable[str]) -> None:
        self._places = sorted({place for place in places if "gfx" in place or "TensileLibrary" in place})
        self._opened: dict[tuple[str, str], KernelFolder | None] = {}

    def opened_by(self, place: str) -> KernelFolder | None:
        """Return the folder that the library at ``place`` opens; none for a library without one, or if it is absent."""
        opener = opener_of(place)
        if opener is None:
            return None
        key = (opener.name, posixpath.dirname(place))
        if key not in self._opened:
            self._opened[key] = self._find(opener, key[1])
        return self._opened[key]

    def _find(self, opener: Opener, folder: str) -> KernelFolder | None:
        for pattern in opener.folders:
            wanted = posixpath.normpath(posixpath.join(folder, pattern))
            escaped = posixpath.normpath(posixpath.join(glob.escape(folder), pattern))
            places = fnmatch.filter(self._folders, escaped) if "*" in pattern else [wanted]
            files = [(place, self._below(place)) for place in sorted(places)]
            if found := [(place, below) for place, below in files if below]:
                return _read_folder(opener, *found[0])
        return None

    @cached_property
    def _folders(self) -> frozenset[str]:
        found: set[str] = set()
        for place in self._places:
            folder = posixpath.dirname(place)
            while folder and folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def _below(self, folder: str) -> list[str]:
        start, found = f"{folder}/", []
        for place in self._places[bisect_left(self._places, start) :]:
            if not place.startswith(start):
                break
            found.append(place)
        return found


def _read_folder(opener: Opener, folder: str, places: Sequence[str]) -> KernelFolder | None:
    index, code, files = set[TargetId](), set[TargetId](), list[str]()
    patterns = compile_patterns(opener.index)
    is_merged = False
    for place in places:
        path = place.removeprefix(f"{folder}/")
        is_merged = is_merged or path in opener.merged
        found = index if _is_index(path, patterns) else code if path.endswith(opener.code) else None
        if found is not None and (targets := _named_targets(path)):
            found.update(targets)
            files.append(place)
    return KernelFolder(opener, folder, frozenset(index), is_merged, frozenset(code), tuple(files)) if files else None


def _is_index(path: str, patterns: Iterable[PathPattern]) -> bool:
    return any(pattern.match(path) for pattern in patterns)


def _named_targets(path: str) -> tuple[TargetId, ...]:
    """Return the targets that a path below the folder names, those of families included."""
    families = [family for word in _WORD.findall(path) if (family := find_family(word))]
    return (*targets_in_path(path), *(TargetId(name) for family in families for name in family.targets))


# ----- all files together ---------------------------------------------------------------------------------------------


class FileCode(msgspec.Struct, frozen=True, kw_only=True):
    """The code of one file, or the archives that it has its code in, or the code that it has as an archive."""

    place: str
    source: str = ""
    """What messages call it."""
    package: str = ""
    """The name of the package that it is of, if it is of any."""
    bundles: tuple[tuple[TargetId, ...], ...] = ()
    """The targets of each bundle."""
    units: tuple[SplitUnit, ...] = ()
    """What a split library asks archives for."""
    archive: KpackArchive | None = None

    @property
    def has_code(self) -> bool:
        """Whether the file is host code with device code, wherever that lies."""
        return bool(self.bundles or self.units) and not is_kernel_file(self.place)


def read_file_code(data: Data, *, place: str, source: str, package: str = "") -> FileCode | None:
    """Return the code of a file, of every member if it is a static library; none for a file without any.

    Raises `InputError` for damaged files.
    """
    if is_kpack(data):
        archive = read_archive(data, name=source)
        return FileCode(place=place, source=source, package=package, archive=archive)
    split = read_split_library(data, name=source) if is_host_file(data) else None
    if split is not None:
        return FileCode(place=place, source=source, package=package, units=split.units)
    bundles = tuple(code.bundle.targets for code in iter_code_sources(data, name=source))
    return FileCode(place=place, source=source, package=package, bundles=bundles) if bundles else None


class Reach(enum.Enum):
    """How far a gap reaches."""

    FAILS = "fails"
    """The library fails on GPUs for which its package is meant."""
    UNCLEAR = "unclear"
    """It fails on GPUs for which its package may not be meant: others of its libraries lack code for them, too."""
    COMPILES = "compiles"
    """It works, and compiles kernels when they are first used."""


class CodeGap(NamedTuple):
    """Targets for which a library has code and finds nothing all the same; ``found`` completes "the library ..."."""

    file: FileCode
    targets: tuple[TargetId, ...]
    found: str
    reach: Reach
    is_archive: bool = False
    is_own: bool = True
    """Whether the library is for them by its own code, or by being built for every GPU; else by that of others."""

    @property
    def is_lost(self) -> bool:
        """Whether the package serves no such GPU, whatever its other libraries have code for."""
        return self.is_own and self.reach is not Reach.COMPILES


def without_lost(carried: Iterable[TargetId], lost: Iterable[TargetId]) -> set[TargetId]:
    """Return what is left of targets without those that are lost; of an open one, the other settings."""
    left = set(carried)
    for target in lost:
        settings = {one: settings_of(one, target.features) for one in left if one.processor == target.processor}
        opened = {setting for found in settings.values() for setting in found}
        left = {one for one in (left - settings.keys()) | opened if not covers([target], one)}
    return left


class CodeTree:
    """Files that are laid over each other. Where it is ``closed``, nothing else will be installed with them."""

    def __init__(
        self, files: Iterable[FileCode], places: Iterable[tuple[str, str]] = (), *, closed: bool = False
    ) -> None:
        self.files = tuple(files)
        self.closed = closed
        self._packages = {**{file.place: file.package for file in self.files}, **dict(places)}
        self.folders = KernelFolders(self._packages)
        self._names: dict[tuple[str, str], frozenset[str]] = {}
        self._lookups: dict[int, tuple[Lookup, ...]] = {}
        self._targets: dict[int, tuple[TargetId, ...]] = {}
        self._archives = [file for file in self.files if file.archive is not None]

    def gaps(self) -> tuple[CodeGap, ...]:
        """Return the gaps of all files, in their order."""
        return self._gaps

    @cached_property
    def _gaps(self) -> tuple[CodeGap, ...]:
        return tuple(gap for file in self.files for gap in (*self._archive_gaps(file), *self._kernel_gaps(file)))

    def lookups(self, file: FileCode) -> tuple[Lookup, ...]:
        """Return what each wrapper of a split library finds; none for other files."""
        if id(file) not in self._lookups:
            folder = posixpath.dirname(file.place)
            differing = {unit.marker.search_paths for unit in file.units}
            by_paths = {paths: self._search(folder, paths) for paths in differing}
            found = tuple(Lookup(unit, by_paths[unit.marker.search_paths]) for unit in file.units)
            self._lookups[id(file)] = found
        return self._lookups[id(file)]

    def _search(self, folder: str, paths: Sequence[str]) -> tuple[SearchedArchive, ...]:
        return tuple(
            SearchedArchive(other.archive, number, target)
            for number, path in enumerate(paths)
            for other in self._archives
            if other.archive is not None and (target := target_at(_place_at(folder, path), other.place)) is not None
        )

    def targets_of(self, file: FileCode) -> tuple[TargetId, ...]:
        """Return the targets that a file has code for in some unit, wherever that lies."""
        if id(file) not in self._targets:
            units = [*file.bundles, *(lookup.targets for lookup in self.lookups(file))]
            self._targets[id(file)] = tuple(dict.fromkeys(target for targets in units for target in targets))
        return self._targets[id(file)]

    def _archive_gaps(self, file: FileCode) -> Iterator[CodeGap]:
        if not file.units:
            return
        lookups = self.lookups(file)
        paths = first_of(list(dict.fromkeys(path for unit in file.units for path in unit.marker.search_paths)))
        if not self._given(file):
            found = f"has its device code in kpack archives that no given package has: {paths}"
            yield CodeGap(file, (), found, Reach.FAILS if self.closed else Reach.UNCLEAR, is_archive=True)
            return
        lacking: dict[str, list[TargetId]] = defaultdict(list)
        for target in _widest(self._wanted(file)):
            if (reason := _lack_in_archives(lookups, target)) is not None:
                lacking[reason].append(target)
        is_known = all(unit.marker.entries for unit in file.units)
        # Libraries of the SDK are each for those GPUs that they have kernels for, which AMD's markers don't say.
        is_sure = is_known or not any(lookup.targets for lookup in lookups) or not is_sdk_package(file.package)
        elsewhere = "" if any(lookup.archives for lookup in lookups) else self._elsewhere(file)
        for reason, targets in lacking.items():
            words = ", ".join(map(str, targets))
            found = f"finds no device code for {words}: {reason or f'no given archive at {paths} has any{elsewhere}'}"
            yield CodeGap(file, tuple(targets), found, Reach.FAILS if is_sure else Reach.UNCLEAR, is_archive=True)

    def _elsewhere(self, file: FileCode) -> str:
        """Return where archives are that are named as the library's, to be put behind a message."""
        names = {path.replace("\\", "/").rpartition("/")[2] for unit in file.units for path in unit.marker.search_paths}
        places = [other.place for other in self._archives]
        alike = [p for p in places if any(target_at(name, posixpath.basename(p)) is not None for name in names)]
        return f"; there are {first_of(sorted(alike))}" if alike else ""

    def _wanted(self, file: FileCode) -> list[TargetId]:
        """Return the targets that a split library had code for, as far as archives for such GPUs are given.

        Where its markers don't say which, they are all that the given archives are for.
        """
        entries = _entry_targets(file)
        if entries is None:
            return list(self._given(file))
        given = {target.processor for target in self._given(file)}
        return [target for target in entries if target.processor in given]

    def _given(self, library: FileCode) -> tuple[TargetId, ...]:
        """Return the targets that given archives list or are named for, of those that may belong to a library."""
        beside = [file.archive for file in self._archives if file.archive and self._is_beside(file.place, library)]
        texts = dict.fromkeys(text for archive in beside for text in archive.targets)
        listed = [target for text in texts if (target := _parse(text)) and target.processor.startswith("gfx")]
        places = [place for place in self._packages if place.endswith(".kpack") and self._is_beside(place, library)]
        named = dict.fromkeys(target for place in places for target in targets_in_path(posixpath.basename(place)))
        processors = {target.processor for target in listed}
        return (*listed, *(target for target in named if target.processor not in processors))

    def _is_beside(self, place: str, library: FileCode) -> bool:
        """Return whether a file is in the same top folder as a library, or of a package that completes its package."""
        package = self._packages[place]
        is_completing = package == library.package or package.startswith(f"{library.package}-device-")
        return is_completing or place.partition("/")[0] == library.place.partition("/")[0]

    def _kernel_gaps(self, file: FileCode) -> Iterator[CodeGap]:
        folder = self.folders.opened_by(file.place)
        if folder is None:
            return
        own = self.targets_of(file)
        rest = self._rest(file)
        meant = tuple(target for target in self._meant(rest) if self._all_cover(rest, target))
        brought = self._brought(file)
        if folder.opener.everywhere and not own:
            meant = tuple(dict.fromkeys([*meant, *map(TargetId, sorted(brought))]))
        lacking: dict[tuple[str, Reach], list[TargetId]] = defaultdict(list)
        holders = {self._packages[place] for place in folder.files}
        # What is in device packages is complete only with those for all other GPUs, which need not be given.
        is_whole = file.package in holders or not any("gfx" in holder for holder in holders)
        is_own = bool(own) or folder.opener.everywhere
        for target in own or meant:
            lack = folder.find_lack_of_code(target)
            if lack and (is_whole or target.processor in brought):
                is_sure = is_own and (target.processor in brought or self._all_cover(rest, target))
                reach = Reach.FAILS if is_sure else Reach.UNCLEAR
                kind = lack.partition(" for ")[0]
                lacking[kind, Reach.COMPILES if folder.opener.without is Without.COMPILES else reach].append(target)
        for (kind, reach), targets in lacking.items():
            words, others = ", ".join(map(str, targets)), first_of(folder.named, 8)
            found = f"opens {folder.place}, which {kind} for {words}, but has some for {others}"
            found += "; it compiles kernels when they are first used" if reach is Reach.COMPILES else ""
            yield CodeGap(file, tuple(targets), found, reach, is_own=is_own)

    def _rest(self, file: FileCode) -> list[FileCode]:
        """Return the other libraries of a file's package that have code and open no folder."""
        return [
            other
            for other in self._by_package[file.package]
            if other.has_code and other is not file and opener_of(other.place) is None
        ]

    def _meant(self, files: Iterable[FileCode]) -> tuple[TargetId, ...]:
        return tuple(dict.fromkeys(target for other in files for target in self.targets_of(other)))

    def _all_cover(self, files: Iterable[FileCode], target: TargetId) -> bool:
        return all(covers(self.targets_of(other), target) for other in files)

    @cached_property
    def _by_package(self) -> dict[str, list[FileCode]]:
        found: dict[str, list[FileCode]] = defaultdict(list)
        for file in self.files:
            found[file.package].append(file)
        return found

    def _brought(self, library: FileCode) -> frozenset[str]:
        """Return the processors that other packages bring kernel files or archives for, which belong to a library's."""
        key = (library.package, library.place.partition("/")[0])
        if key not in self._names:
            places = [place for place, package in self._packages.items() if package != library.package]
            kernels = [place for place in places if is_kernel_file(place) and self._is_beside(place, library)]
            found = (target for place in kernels for target in targets_in_path(posixpath.basename(place)))
            self._names[key] = frozenset(target.processor for target in found)
        return self._names[key]


def _widest(targets: Sequence[TargetId]) -> list[TargetId]:
    """Leave out settings of targets that are there themselves."""
    return [one for one in targets if not any(other != one and covers([other], one) for other in targets)]


def _place_at(folder: str, path: str) -> str:
    """Return the place that a search path leads to; one from the root of the file system, below the root."""
    return posixpath.normpath(posixpath.join(folder, path.replace("\\", "/"))).lstrip("/")


def _entry_targets(file: FileCode) -> list[TargetId] | None:
    """Return the targets that the bundles of a split library had, by its markers; none where some don't say it."""
    if not all(unit.marker.entries for unit in file.units):
        return None
    entries = dict.fromkeys(entry for unit in file.units for entry in unit.marker.entries)
    ids = [found for entry in entries if (found := _parse_entry(entry)) is not None]
    return list(dict.fromkeys(target for found in ids if (target := found.target) is not None))


def _parse_entry(text: str) -> BundleEntryId | None:
    try:
        return BundleEntryId.parse(text)
    except InputError:
        return None


def _parse(text: str) -> TargetId | None:
    try:
        return parse_target_id(text)
    except InputError:
        return None


def _lack_in_archives(lookups: Sequence[Lookup], target: TargetId) -> str | None:
    """Return why a split library has not all of its code for ``target``: empty without an archive, none if it has."""
    row = load_catalog().processors.get(target.processor)
    members = row.members if isinstance(row, Generic) else ()
    gpus = [TargetId(name, **target.features) for name in members] or [target]
    differing = {id(lookup.archives): lookup for lookup in lookups}.values()
    named = {name for lookup in differing for other in lookup.listed for name in other.features}
    for lookup in lookups:
        for setting in (setting for gpu in gpus for setting in settings_of(gpu, named)):
            found = lookup.find(setting)
            if found.lacking is not None:
                return f"{posixpath.basename(found.lacking.name)} lists {found.target} and lacks {lookup.key}"
            if found.code is None:
                return ""
    return None
