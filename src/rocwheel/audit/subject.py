"""The data that rules use: the tree, the processes that its files start, and the user's expectations."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.sdk_names import is_divided, is_sdk_package
from rocwheel.audit.dll_uses import DllUse, find_dll_uses
from rocwheel.audit.wheel_toolkits import Toolkit, ToolkitOption, judge_toolkit, sdk_library_folders
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.known_libraries import allowed_libraries, is_shared_by_toolkits
from rocwheel.environment.library_code import CodeTree, FileCode
from rocwheel.environment.loader import Library, Loader, LookupLimitError, TreeDisk, place_of
from rocwheel.environment.requirements import required_distributions
from rocwheel.environment.run_path_advice import assumed_package_folders, assumed_sdk_folders
from rocwheel.environment.run_path_entries import hwcaps_folders
from rocwheel.environment.sdk_layout import SdkFolder, find_sdk_library, other_versions, sdk_folders
from rocwheel.environment.tree import Distribution, InstalledFile
from rocwheel.environment.windows_files import WindowsFiles
from rocwheel.targets.kernel_folders import opener_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.environment.loader import Search
    from rocwheel.environment.tree import Tree


class Process(msgspec.Struct, frozen=True):
    """The result of loading one file into an empty process."""

    file: InstalledFile
    loader: Loader
    linked: int
    """The number of objects that are the file or its dependencies. The file opens the other objects by name."""

    @property
    def missed(self) -> list[Search]:
        """The failed searches that the file itself requested."""
        return [search for search in self.loader.missing if search.requester == 0]


class UndeclaredUse(msgspec.Struct, frozen=True):
    """A file that loads a library from another distribution, and the library's name as given in the file."""

    owner: Distribution
    file: InstalledFile
    name: str
    provider: str


_MOST_LOOKUPS = 1_000_000
_BYTES_FOR_LOOKUP = 1 << 10


class Subject:
    """The data about one environment that rules use. Expensive data is computed only once."""

    def __init__(self, tree: Tree, settings: AuditSettings) -> None:
        self.tree = tree
        self.settings = settings
        self.system = allowed_libraries(settings.system_libraries)
        self._lookups_left = _MOST_LOOKUPS + sum(file.size for file in tree.files) // _BYTES_FOR_LOOKUP
        self._files: dict[str, InstalledFile | None] = {}
        self._other_versions: dict[str, list[str]] = {}
        self._toolkits: dict[str, Toolkit] = {}

    @property
    def is_closed(self) -> bool:
        """Whether the packages form a complete set. If so, the audit assumes no other packages."""
        return self.tree.is_installed if self.settings.closed is None else self.settings.closed

    @cached_property
    def windows(self) -> WindowsFiles:
        """The DLLs and programs for Windows."""
        return WindowsFiles(self.tree)

    @cached_property
    def code(self) -> CodeTree:
        """The device code of all files, wherever it is stored."""
        names = {owner.source: owner.name for owner in self.tree.distributions}
        places = ((file.path, names.get(file.distribution, "")) for file in self.tree.files if file.link is None)
        found = (
            FileCode(
                place=file.path,
                source=file.source,
                soname=_soname_of(file),
                package=names.get(file.distribution, ""),
                bundles=tuple(map(_targets, (bundle.targets for bundle in file.device.bundles))) if file.device else (),
                units=file.device.units if file.device else (),
                archive=file.device.archive if file.device else None,
            )
            for file in self.tree.files
            if file.device is not None or (file.link is None and opener_of(file.path, _soname_of(file)))
        )
        divided = {owner.name for owner in self.tree.distributions if _is_divided(owner)}
        return CodeTree(found, places, closed=self.is_closed, divided=divided)

    @cached_property
    def python_definitions(self) -> frozenset[bytes]:
        """The names of symbols that look like the interpreter's symbols and that are defined in at least one file."""
        traits = (file.traits for file in self.tree.files if file.traits is not None)
        names = (name for one in traits for name in one.linkage.definitions)
        return frozenset(name for name in names if name.startswith((b"Py", b"_Py")))

    @cached_property
    def dll_uses(self) -> tuple[DllUse, ...]:
        """All imports of all audited Windows files. Empty if the tree isn't for Windows."""
        return find_dll_uses(self.windows, self.tree, self.settings)

    @cached_property
    def assumed(self) -> dict[str, SdkFolder]:
        """The SDK folders that, according to the SDK's layout, provide needed libraries, keyed by path.

        The libraries of torch are included if no given package requires torch. If a package requires torch, users can
        add torch to the given packages. The result is empty for an installed environment, which is complete unless the
        settings specify otherwise.
        """
        layout = assumed_sdk_folders(self.tree, closed=self.settings.closed)
        needed = {name for file in self.tree.files if file.elf for name in file.elf.wanted}
        needed |= {name for names in self.settings.dlopen.values() for name in names}
        # ROCm provides the OpenCL loader only for packages that use ROCm.
        if not any(find_sdk_library(name) and not is_shared_by_toolkits(name) for name in needed):
            needed = {name for name in needed if not is_shared_by_toolkits(name)}
        absent = sorted(needed - self.tree.libraries.keys())
        required = frozenset[str]().union(*self.required.values())
        others = assumed_package_folders(self.tree, closed=self.settings.closed)
        return {
            **{f"{one.folder}/{name}": one for name in absent if (one := find_sdk_library(name)) in layout and one},
            **{
                f"{one.folder}/{name}": one
                for one in others
                if one.distribution not in required
                for name in absent
                if name in one.libraries
            },
        }

    @cached_property
    def disk(self) -> TreeDisk:
        """The files as the loader sees them."""
        files = {file.path: file.elf for file in self.tree.files if file.elf is not None}
        obstacles = {file.path: file.obstacle for file in self.tree.files if file.obstacle is not None}
        return TreeDisk(files, self.tree.links, self.assumed, obstacles, self.tree.layout)

    @cached_property
    def folders(self) -> frozenset[str]:
        """All folders in the tree and in the SDK's layout, relative to site-packages."""
        paths = [file.path for file in self.tree.files]
        paths += [f"{folder.folder}/x" for folder in sdk_folders()] if self.assumed else []
        paths += self.assumed
        found: set[str] = {""}
        for path in paths:
            folder = posixpath.dirname(path)
            while folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def other_versions(self, soname: str) -> list[str]:
        """Return the libraries in the tree and in the SDK's layout whose SONAME differs only in the version."""
        if soname not in self._other_versions:
            self._other_versions[soname] = other_versions(soname, self.tree.libraries)
        return self._other_versions[soname]

    def toolkit_of(self, owner: Distribution, option: ToolkitOption = "auto", *, keeps: bool = False) -> Toolkit:
        """Return the toolkit that provides a wheel's ROCm libraries. For ``keeps``, see `Toolkit`.

        With ``auto``, which is the default for repairs, `judge_toolkit` decides.
        """
        if option != "auto":
            return Toolkit(option == "sdk", is_told=True, keeps=keeps)
        if owner.source not in self._toolkits:
            self._toolkits[owner.source] = judge_toolkit(self.tree, owner, self.settings, self._used_by)
        judged = self._toolkits[owner.source]
        return msgspec.structs.replace(judged, keeps=keeps and not judged.reason)

    def _used_by(self, owner: Distribution) -> frozenset[str]:
        return frozenset(use.provider for use in self.undeclared_uses if use.owner is owner)

    @cached_property
    def undeclared_uses(self) -> tuple[UndeclaredUse, ...]:
        """For each pair of distributions, the first use without a direct or indirect requirement."""
        found = dict[tuple[str, str], UndeclaredUse]()
        for process in self.processes:
            owner = self.tree.owners.get(process.file.distribution)
            if owner is None or not owner.dist_info:
                continue
            known = {"", owner.name, *self.required[owner.name]}
            for search in process.loader.searches:
                if search.requester or search.found is None:
                    continue
                provider = self.provider_of(process.loader.objects[search.found].library)
                if provider not in known:
                    use = UndeclaredUse(owner, process.file, search.name, provider)
                    found.setdefault((owner.source, provider), use)
        return tuple(found.values())

    @cached_property
    def sdk_folders(self) -> frozenset[str]:
        """The folders of all SDK packages, including packages that aren't given."""
        return sdk_library_folders(self.tree)

    def has_folder(self, folder: str) -> bool:
        """Return whether a folder, or a symbolic link to a folder, exists at a path relative to site-packages."""
        return folder in self.folders or self.disk.is_folder(f"{SITE}/{folder}")

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """A process for each audited file that the loader can load, including libraries that the file opens by name.

        Files in wheels for musl have no process, because musl has a different loader.
        """
        other = {owner.source for owner in self.tree.distributions if owner.is_for_musl}
        started = []
        for file in self.tree.loadable:
            if file.distribution not in other:
                started.append(self.start(file))
                self._lookups_left -= started[-1].loader.lookups
        return tuple(started)

    def start(self, file: InstalledFile) -> Process:
        """Load one file into an empty process.

        Raises `InputError` if the files need far more lookups than published packages of the same size.
        """
        loader = Loader(self.disk, self.system, hwcaps_folders(self.settings.cpu_level), self._lookups_left)
        library = self.disk.open(f"{SITE}/{file.path}")
        try:
            loader.load(library or Library(f"{SITE}/{file.path}", file.path, file.elf))
            linked = len(loader.objects)
            for name in self.settings.opened_by(file.path):
                loader.open_name(name)
        except LookupLimitError as e:
            found = "makes the dynamic loader look for libraries in too many places"
            expected = f"at most {_MOST_LOOKUPS} lookups for all files, and one more for each KiB"
            raise InputError(file.source, found, expected=expected, remedy="Pass fewer packages at a time.") from e
        return Process(file, loader, linked)

    @cached_property
    def inherited(self) -> frozenset[tuple[str, str]]:
        """Pairs of a file's path and the name of a library that the file finds only through the RPATH of its loader."""
        missed = {(process.file.path, search.name) for process in self.processes for search in process.missed}
        return frozenset(
            (file.path, search.name)
            for process in self.processes
            for search in process.loader.searches
            if search.requester
            and (file := self.file_of(process.loader.objects[search.requester].library))
            and (file.path, search.name) in missed
            and process.loader.is_inherited(search)
        )

    @cached_property
    def loaded_before(self) -> frozenset[tuple[str, str]]:
        """Pairs of a file's path and the name of a library that is always in memory before the file needs it.

        Such a library isn't found through the run path of the audited file itself. The loader opens all direct
        dependencies of a file before the dependencies of its libraries. This applies to libraries that a package's own
        extension modules load. The SDK's libraries are excluded because they are also intended for other packages.
        """
        missed = {(process.file.path, search.name) for process in self.processes for search in process.missed}
        met, unmet = set[tuple[str, str]](), set[tuple[str, str]]()
        for process in self.processes:
            for search in process.loader.searches if missed and process.file.has_init_function else ():
                file = self.file_of(process.loader.objects[search.requester].library) if search.requester else None
                if file and (file.path, search.name) in missed and file.distribution == process.file.distribution:
                    (unmet if search.found is None else met).add((file.path, search.name))
        sdk = {path for path, _ in met if is_sdk_package(self.provider_of_file(self.tree.by_path[path]))}
        return frozenset(pair for pair in met - unmet if pair[0] not in sdk)

    @cached_property
    def lacking(self) -> frozenset[str]:
        """The paths of files that need a library that no package provides."""
        names = {(process.file.path, search.name) for process in self.processes for search in process.missed}
        return frozenset(path for path, name in names if name not in self.tree.libraries)

    def file_of(self, library: Library) -> InstalledFile | None:
        """Return the file of a loaded library, or `None` for system libraries and assumed libraries."""
        if library.identity not in self._files:
            self._files[library.identity] = self.tree.by_path.get(place_of(library))
        return self._files[library.identity]

    def provider_of(self, library: Library) -> str:
        """Return the name of a loaded library's distribution, or an empty string for system libraries."""
        path = place_of(library)
        if path in self.assumed and path not in self.tree.by_path:
            return self.assumed[path].distribution
        file = self.tree.by_path.get(path)
        return self.provider_of_file(file) if file else ""

    def provider_of_file(self, file: InstalledFile) -> str:
        """Return the name of a file's distribution, or an empty string if there is no distribution."""
        owner = self.tree.owners.get(file.distribution)
        return owner.name if owner else ""

    def load_together(self, first: InstalledFile, second: InstalledFile) -> bool:
        """Return whether a process can use both packages, because a given package requires both.

        A package is considered to require itself. A file that doesn't belong to any package may be loaded together with
        any other file.
        """
        one, other = (self.tree.owners.get(file.distribution) for file in (first, second))
        if one is None or other is None or one is other:
            return True
        pair = {one.name, other.name}
        return any(pair <= {name, *required} for name, required in self.required.items())

    @cached_property
    def required(self) -> dict[str, frozenset[str]]:
        """The names of each distribution's direct and indirect requirements, whether they are given or not."""
        return {owner.name: required_distributions(self.tree, owner) for owner in self.tree.distributions}


def _soname_of(file: InstalledFile) -> str:
    return (file.elf.soname or "") if file.elf else ""


def _is_divided(owner: Distribution) -> bool:
    """Return whether a package's kernels are in other packages. Artifacts include the kernels for each GPU."""
    is_artifact = bool(owner.name) and not owner.dist_info
    return is_artifact or is_divided(owner.name, owner.requires)


def _targets(spellings: Iterable[str]) -> tuple[TargetId, ...]:
    return tuple(map(parse_target_id, spellings))
