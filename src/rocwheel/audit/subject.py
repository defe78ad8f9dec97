"""What rules look at: the tree, the processes that its files start, and the user's expectations."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from packaging.markers import UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from rocwheel.audit.disks import SITE, TreeDisk, place_of
from rocwheel.audit.hwcaps import hwcaps_folders
from rocwheel.audit.loader import Library, Loader
from rocwheel.audit.sdk_layout import SdkFolder, find_sdk_library, sdk_folders
from rocwheel.audit.systems import AllowedLibraries, system_library_patterns
from rocwheel.audit.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.configuration import Configuration
    from rocwheel.audit.tree import Distribution, Tree

__all__ = ["Process", "Subject", "applies", "parse_requirement", "parse_requirements"]


class Process(msgspec.Struct, frozen=True):
    """What happens when one file is loaded into an otherwise empty process."""

    file: InstalledFile
    loader: Loader
    linked: int
    """How many of the loader's objects are the file and what it needs; the others are opened by name."""


class Subject:
    """Everything that rules may ask; what is costly is worked out once."""

    def __init__(self, tree: Tree, configuration: Configuration) -> None:
        self.tree = tree
        self.configuration = configuration
        self.system = AllowedLibraries((*system_library_patterns(), *configuration.system_libraries))

    @cached_property
    def assumed(self) -> dict[str, SdkFolder]:
        """Path to SDK folder for the SDK's libraries that are needed and taken to be installed as its layout says."""
        if self.configuration.closed:
            return {}
        given = {owner.name for owner in self.tree.distributions}
        needed = {name for file in self.tree.files if file.elf for name in file.elf.needed}
        needed |= {name for names in self.configuration.dlopen.values() for name in names}
        return {
            f"{folder.folder}/{name}": folder
            for name in sorted(needed)
            if name not in self.tree.libraries
            and (folder := find_sdk_library(name))
            and folder.distribution not in given
        }

    @cached_property
    def disk(self) -> TreeDisk:
        """The files as the loader finds them."""
        files = {file.path: file.elf for file in self.tree.files if file.elf is not None}
        return TreeDisk(files, self.tree.links, self.assumed)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder of the tree and of the SDK's layout, relative to site-packages."""
        paths = [file.path for file in self.tree.files]
        paths += [f"{folder.folder}/x" for folder in sdk_folders()] if self.assumed else []
        found: set[str] = {""}
        for path in paths:
            folder = posixpath.dirname(path)
            while folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def has_folder(self, folder: str) -> bool:
        """Tell whether there is a folder, relative to site-packages, or a symlink to one."""
        return folder in self.folders or self.disk.is_folder(f"{SITE}/{folder}")

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """One process for each audited file that the loader loads, with what the recipe says it opens by name.

        None for the files of wheels for musl, whose loader is another one.
        """
        other = {owner.source for owner in self.tree.distributions if owner.is_for_musl}
        return tuple(self.start(file) for file in self.tree.loadable if file.distribution not in other)

    def start(self, file: InstalledFile) -> Process:
        """Load one file into an empty process."""
        loader = Loader(self.disk, self.system, hwcaps_folders(self.configuration.cpu_level))
        library = self.disk.open(f"{SITE}/{file.path}")
        loader.load(library or Library(f"{SITE}/{file.path}", file.path, file.elf))
        linked = len(loader.objects)
        for name in self.configuration.opened_by(file.path):
            loader.open_name(name)
        return Process(file, loader, linked)

    @cached_property
    def inherited(self) -> frozenset[tuple[str, str]]:
        """File and name of each search that a RPATH above the file answers in the process of some other file."""
        return frozenset(
            (file.path, search.name)
            for process in self.processes
            for search in process.loader.searches
            if search.requester
            and (file := self.file_of(process.loader.objects[search.requester].library))
            and process.loader.is_inherited(search)
        )

    def file_of(self, library: Library) -> InstalledFile | None:
        """Return the file of the tree that a loaded library is; none for the system's and for assumed ones."""
        return self.tree.by_path.get(place_of(library))

    def provider_of(self, library: Library) -> str:
        """Return the name of the distribution that a loaded library belongs to; empty for the system's."""
        path = place_of(library)
        if path in self.assumed and path not in self.tree.by_path:
            return self.assumed[path].distribution
        file = self.tree.by_path.get(path)
        owner = self.tree.owners.get(file.distribution) if file else None
        return owner.name if owner else ""

    @cached_property
    def required(self) -> dict[str, frozenset[str]]:
        """Distribution to all that it requires, directly or not, among the given ones and by name beyond them."""
        direct = {
            owner.name: {str(canonicalize_name(r.name)) for r in parse_requirements(owner)}
            for owner in self.tree.distributions
        }
        return {name: frozenset(_reachable(name, direct)) for name in direct}


def parse_requirements(owner: Distribution) -> list[Requirement]:
    """Return the requirements that can be read; which can't is the metadata rules' to tell."""
    return [requirement for text in owner.requires if (requirement := parse_requirement(text)) is not None]


def parse_requirement(text: str) -> Requirement | None:
    """Return a requirement; none for malformed text, and for a marker that compares what has no order."""
    try:
        requirement = Requirement(text)
        applies(requirement)
    except (InvalidRequirement, UndefinedComparison):
        return None
    return requirement


def applies(requirement: Requirement, extras: Iterable[str] = ("",)) -> bool:
    """Tell whether a requirement holds on this machine with any of the extras.

    Raises `packaging.markers.UndefinedComparison`, though not for what `parse_requirement` returns.
    """
    marker = requirement.marker
    try:
        return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)
    except InvalidVersion:
        # Of this machine, such as a kernel's: earlier releases of packaging don't compare it as text.
        return True


def _reachable(name: str, direct: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        for other in direct.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached
