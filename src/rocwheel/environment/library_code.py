"""Determines which GPUs a library serves.

Its code can be in the file itself, in kpack archives, or in a kernel folder.

Every command that reports on packages uses this module. Paths identify files, as if all wheels were installed into the
same folder, and all folders were merged.
"""

from __future__ import annotations

import enum
import posixpath
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.code_objects import BundleEntryId, TargetId, as_target_id
from rocwheel.binary.elf.facts import read_soname
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import KpackArchive, read_archive
from rocwheel.binary.kpack.markers import SplitUnit, find_split_library, target_at
from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.device.kpack_code import SearchedArchive, UnitLookup
from rocwheel.targets.catalog import Generic, load_catalog
from rocwheel.targets.compatibility import covers, settings_of
from rocwheel.targets.kernel_files import Without, is_kernel_file, kpack_target, targets_in_path
from rocwheel.targets.kernel_folders import KernelFolder, KernelFolders, Loss, opener_of
from rocwheel.targets.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files import Opener


class FileCode(msgspec.Struct, frozen=True, kw_only=True):
    """The code of a file: its own code, the archives with its code, or its contents if it is an archive."""

    place: str
    source: str = ""
    """The name of the file in messages."""
    soname: str = ""
    package: str = ""
    """The name of the package that the file belongs to, or an empty string."""
    bundles: tuple[tuple[TargetId, ...], ...] = ()
    """The targets of each bundle."""
    units: tuple[SplitUnit, ...] = ()
    """The references from a split library to archives."""
    archive: KpackArchive | None = None

    @property
    def opener(self) -> Opener | None:
        """The kernel folder that the file opens, according to the table, or `None` if the file opens no folder."""
        return opener_of(self.place, self.soname)

    @property
    def own_targets(self) -> tuple[TargetId, ...]:
        """The targets of the file's bundles, or the target in an archive's name.

        Raises `InputError` for a name without a target.
        """
        if self.place.endswith(".kpack"):
            return (kpack_target(self.place, source=self.source),)
        return tuple(target for targets in self.bundles for target in targets)

    @property
    def has_code(self) -> bool:
        """Whether the file is host code with device code, regardless of the location of that code."""
        return bool(self.bundles or self.units) and not is_kernel_file(self.place)


def read_file_code(data: Data, *, place: str, source: str, package: str = "") -> FileCode | None:
    """Return a file's code. For a static library, this is the code in all members.

    Return `None` for a file without code, unless it has an archive's name or opens a kernel folder. Raises `InputError`
    for damaged files.
    """
    found = FileCode(place=place, source=source, package=package, soname=read_soname(data, name=source))
    if is_kpack(data):
        return msgspec.structs.replace(found, archive=read_archive(data, name=source))
    split = find_split_library(data, name=source)
    if split is not None:
        return msgspec.structs.replace(found, units=split.units)
    bundles = tuple(code.bundle.targets for code in iter_code_sources(data, name=source))
    return msgspec.structs.replace(found, bundles=bundles) if bundles else named_code(found)


def named_code(file: FileCode) -> FileCode | None:
    """Return a file without code if it still counts: an archive by its name, or a file that opens a kernel folder."""
    return file if file.place.endswith(".kpack") or file.opener else None


class Reach(enum.Enum):
    """The consequences of a gap."""

    FAILS = "fails"
    """The library fails on GPUs that its package supports."""
    UNCLEAR = "unclear"
    """The library fails on GPUs that its package might not support, because other libraries also lack code for them."""
    COMPILES = "compiles"
    """The library works, but compiles kernels at first use."""


class CodeGap(NamedTuple):
    """Targets for which a library has code that it can't find.

    ``found`` completes a sentence that begins with the library.
    """

    file: FileCode
    targets: tuple[TargetId, ...]
    found: str
    reach: Reach
    is_archive: bool = False
    is_own: bool = True
    """Whether the library's own code or a build for every GPU implies the targets, rather than other libraries."""

    @property
    def is_lost(self) -> bool:
        """Whether the package doesn't serve these GPUs at all, even if its other libraries have code for them."""
        return self.is_own and self.reach is not Reach.COMPILES


def without_lost(carried: Iterable[TargetId], lost: Iterable[TargetId]) -> set[TargetId]:
    """Return the targets that aren't lost. If a lost target has fewer features, its other settings remain."""
    left = set(carried)
    for target in lost:
        settings = {one: settings_of(one, target.features) for one in left if one.processor == target.processor}
        opened = {setting for found in settings.values() for setting in found}
        left = {one for one in (left - settings.keys()) | opened if not covers([target], one)}
    return left


class CodeTree:
    """Merged files. If the tree is ``closed``, nothing else will be installed with them.

    Kernels of ``divided`` packages are in separate packages, each for some GPUs. For ``unfinished`` packages, some of
    these separate packages aren't given.
    """

    def __init__(
        self,
        files: Iterable[FileCode],
        places: Iterable[tuple[str, str]] = (),
        *,
        closed: bool = False,
        divided: Collection[str] = (),
        unfinished: Collection[str] = (),
    ) -> None:
        self.files = tuple(files)
        self.closed = closed
        self._divided, self._unfinished = divided, unfinished
        self._packages = {**{file.place: file.package for file in self.files}, **dict(places)}
        self.folders = KernelFolders(self._packages)
        self._names: dict[tuple[str, str], frozenset[str]] = {}
        self._lookups: dict[int, tuple[UnitLookup, ...]] = {}
        self._targets: dict[int, tuple[TargetId, ...]] = {}
        self._archives = [file for file in self.files if file.archive is not None]

    @cached_property
    def gaps(self) -> tuple[CodeGap, ...]:
        """The gaps of all files, in file order."""
        return tuple(gap for file in self.files for gap in (*self._archive_gaps(file), *self._kernel_gaps(file)))

    def lookups(self, file: FileCode) -> tuple[UnitLookup, ...]:
        """Return the result of the lookup for each wrapper in a split library. The result is empty for other files."""
        if id(file) not in self._lookups:
            folder = posixpath.dirname(file.place)
            differing = {unit.marker.search_paths for unit in file.units}
            by_paths = {paths: self._search(folder, paths) for paths in differing}
            found = tuple(UnitLookup(unit, by_paths[unit.marker.search_paths]) for unit in file.units)
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
        """Return the targets for which a file has code in some unit, regardless of the location of that code."""
        if id(file) not in self._targets:
            units = [*file.bundles, *(lookup.targets for lookup in self.lookups(file))]
            self._targets[id(file)] = tuple(dict.fromkeys(target for targets in units for target in targets))
        return self._targets[id(file)]

    def _archive_gaps(self, file: FileCode) -> Iterator[CodeGap]:
        if not file.units:
            return
        lookups = self.lookups(file)
        paths = first_of(list(dict.fromkeys(path for unit in file.units for path in unit.marker.search_paths)))
        if not self._archive_targets(file):
            found = f"has its device code in kpack archives that aren't in any of the given packages: {paths}"
            yield CodeGap(file, (), found, Reach.FAILS if self.closed else Reach.UNCLEAR, is_archive=True)
            return
        lacking: dict[str, list[TargetId]] = defaultdict(list)
        for target in _widest(self._wanted(file)):
            if (reason := _lack_in_archives(lookups, target)) is not None:
                lacking[reason].append(target)
        is_known = all(unit.marker.entries for unit in file.units)
        # SDK libraries serve only the GPUs for which they have kernels. AMD's markers don't list these GPUs.
        is_sure = is_known or not any(lookup.targets for lookup in lookups) or not is_sdk_package(file.package)
        elsewhere = "" if any(lookup.archives for lookup in lookups) else self._elsewhere(file)
        for reason, targets in lacking.items():
            words = ", ".join(map(str, targets))
            found = f"finds no device code for {words}: {reason or f'no given archive at {paths} has code{elsewhere}'}"
            yield CodeGap(file, tuple(targets), found, Reach.FAILS if is_sure else Reach.UNCLEAR, is_archive=True)

    def _elsewhere(self, file: FileCode) -> str:
        """Return the end of a message: the locations of the archives with the names that the library expects."""
        names = {path.replace("\\", "/").rpartition("/")[2] for unit in file.units for path in unit.marker.search_paths}
        places = [other.place for other in self._archives]
        alike = [p for p in places if any(target_at(name, posixpath.basename(p)) is not None for name in names)]
        return f"; archives with these names are at {first_of(sorted(alike))}" if alike else ""

    def _wanted(self, file: FileCode) -> list[TargetId]:
        """Return the targets for which a split library had code, limited to GPUs with given archives.

        If the library's markers don't list the targets, return all targets in the given archives.
        """
        entries = _entry_targets(file)
        if entries is None:
            return list(self._archive_targets(file))
        given = {target.processor for target in self._archive_targets(file)}
        return [target for target in entries if target.processor in given]

    def _archive_targets(self, library: FileCode) -> tuple[TargetId, ...]:
        """Return the targets in the contents or names of given archives that can belong to a library."""
        beside = [file.archive for file in self._archives if file.archive and self._is_beside(file.place, library)]
        texts = dict.fromkeys(text for archive in beside for text in archive.targets)
        listed = [target for text in texts if (target := as_target_id(text)) and target.processor.startswith("gfx")]
        places = [place for place in self._packages if place.endswith(".kpack") and self._is_beside(place, library)]
        named = dict.fromkeys(target for place in places for target in targets_in_path(posixpath.basename(place)))
        processors = {target.processor for target in listed}
        return (*listed, *(target for target in named if target.processor not in processors))

    def _is_beside(self, place: str, library: FileCode) -> bool:
        """Return whether a file is in a library's top folder or package, or in a package that completes it."""
        package = self._packages[place]
        is_completing = package == library.package or package.startswith(f"{library.package}-device-")
        return is_completing or place.partition("/")[0] == library.place.partition("/")[0]

    def _kernel_gaps(self, file: FileCode) -> Iterator[CodeGap]:
        folder = self.folders.opened_by(file.place, file.opener)
        if folder is not None and folder.is_bare:
            yield from self._bare_folder_gaps(file, folder)
        elif folder is not None:
            yield from self._folder_gaps(file, folder)

    def _bare_folder_gaps(self, file: FileCode, folder: KernelFolder) -> Iterator[CodeGap]:
        opens, divided = f"opens {folder.place}", file.package in self._divided
        loss = self.folders.find_loss(file.place, folder.opener, divided=divided, closed=self.closed)
        if loss is Loss.NOT_GIVEN or file.package in self._unfinished:
            found = f"{opens}, but no given package has kernels for it"
            yield CodeGap(file, (), found, Reach.UNCLEAR, is_own=False)
        elif loss is Loss.LOST:
            own = self.targets_of(file)
            targets = own or self._united_targets(self._other_libraries(file))
            found = f"{opens}, which {folder.find_lack(TargetId(''))}: it finds no kernels for any GPU"
            yield CodeGap(file, targets, found, Reach.FAILS, is_own=bool(own) or folder.opener.everywhere)

    def _folder_gaps(self, file: FileCode, folder: KernelFolder) -> Iterator[CodeGap]:
        own = self.targets_of(file)
        rest = self._other_libraries(file)
        meant = tuple(target for target in self._united_targets(rest) if self._all_cover(rest, target))
        processors = self._processors_elsewhere(file)
        if folder.opener.everywhere and not own:
            meant = tuple(dict.fromkeys([*meant, *map(TargetId, sorted(processors))]))
        lacking: dict[tuple[str, str, Reach, bool], list[TargetId]] = defaultdict(list)
        holders = {self._packages[place] for place in folder.files}
        # Device packages are complete only together with the packages for all other GPUs, which might not be given.
        is_whole = file.package in holders or not any("gfx" in holder for holder in holders)
        is_own = bool(own) or folder.opener.everywhere
        for target in own or meant:
            kind, others = self._find_lack(folder, target)
            if kind and (is_whole or target.processor in processors):
                is_sure = is_own and (target.processor in processors or self._all_cover(rest, target))
                reach = Reach.FAILS if is_sure else Reach.UNCLEAR
                reach = Reach.COMPILES if folder.opener.without is Without.COMPILES else reach
                lacking[kind, others, reach, is_own].append(target)
        for target in self._kernel_targets(folder):
            kind, others = self._find_lack(folder, target)
            if kind and target not in (own or meant):
                lacking[kind, others, Reach.UNCLEAR, True].append(target)
        for (kind, others, reach, is_certain), targets in lacking.items():
            words = ", ".join(map(str, targets))
            found = f"opens {folder.place}, which {kind} for {words}, only for {others}"
            found += "; the library compiles kernels at first use" if reach is Reach.COMPILES else ""
            yield CodeGap(file, tuple(targets), found, reach, is_own=is_certain)

    def _kernel_targets(self, folder: KernelFolder) -> list[TargetId]:
        """Return the targets for which a folder has kernels. Targets that the library can't open are omitted."""
        if folder.opener.without is Without.COMPILES:
            return []
        for_all = (self.targets_of(file) for file in self.files if file.place in folder.for_all)
        return sorted({*folder.code, *(target for targets in for_all for target in targets)}, key=id_sort_key)

    def _find_lack(self, folder: KernelFolder, target: TargetId) -> tuple[str, str]:
        """Return the file or kind of file that a folder lacks for a target, and the other targets that have it.

        Both are empty strings if the folder lacks nothing.
        """
        lack = folder.find_lack_of_code(target)
        if lack:
            return lack.partition(" for ")[0], lack.partition(", only for ")[2]
        for file in self.files:
            if file.place in folder.for_all and not covers(self.targets_of(file), target):
                others = first_of(sorted(map(str, self.targets_of(file))), 8)
                return f"has no code in {posixpath.basename(file.place)}", others
        return "", ""

    def _other_libraries(self, file: FileCode) -> list[FileCode]:
        """Return the other libraries in a file's package that have code and don't open a folder."""
        return [
            other
            for other in self._by_package[file.package]
            if other.has_code and other is not file and other.opener is None
        ]

    def _united_targets(self, files: Iterable[FileCode]) -> tuple[TargetId, ...]:
        return tuple(dict.fromkeys(target for other in files for target in self.targets_of(other)))

    def _all_cover(self, files: Iterable[FileCode], target: TargetId) -> bool:
        return all(covers(self.targets_of(other), target) for other in files)

    @cached_property
    def _by_package(self) -> dict[str, list[FileCode]]:
        found: dict[str, list[FileCode]] = defaultdict(list)
        for file in self.files:
            found[file.package].append(file)
        return found

    def _processors_elsewhere(self, library: FileCode) -> frozenset[str]:
        """Return the processors for which other packages provide kernel files or archives that belong to a library."""
        key = (library.package, library.place.partition("/")[0])
        if key not in self._names:
            places = [place for place, package in self._packages.items() if package != library.package]
            kernels = [place for place in places if is_kernel_file(place) and self._is_beside(place, library)]
            found = (target for place in kernels for target in targets_in_path(posixpath.basename(place)))
            self._names[key] = frozenset(target.processor for target in found)
        return self._names[key]


def _widest(targets: Sequence[TargetId]) -> list[TargetId]:
    """Omit targets that another target in the sequence covers."""
    return [one for one in targets if not any(other != one and covers([other], one) for other in targets)]


def _place_at(folder: str, path: str) -> str:
    """Return the location that a search path points to. An absolute path stays inside the tree."""
    return posixpath.normpath(posixpath.join(folder, path.replace("\\", "/"))).lstrip("/")


def _entry_targets(file: FileCode) -> list[TargetId] | None:
    """Return the targets in a split library's markers, or `None` if some markers don't list them."""
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


def _lack_in_archives(lookups: Sequence[UnitLookup], target: TargetId) -> str | None:
    """Return why ``target`` lacks code in archives, or `None` if nothing is missing.

    The result is an empty string if there is no archive.
    """
    row = load_catalog().processors.get(target.processor)
    members = row.members if isinstance(row, Generic) else ()
    gpus = [TargetId(name, **target.features) for name in members] or [target]
    differing = {id(lookup.archives): lookup for lookup in lookups}.values()
    named = {name for lookup in differing for other in lookup.listed for name in other.features}
    for lookup in lookups:
        for setting in (setting for gpu in gpus for setting in settings_of(gpu, named)):
            found = lookup.find(setting)
            if found.lacking is not None:
                return f"{posixpath.basename(found.lacking.name)} lists {found.target} but lacks {lookup.key}"
            if found.code is None:
                return ""
    return None
