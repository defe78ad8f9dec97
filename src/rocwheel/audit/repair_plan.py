"""What has to change in a wheel so that it loads: run paths, requirements, tags; plain values, written by none."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import InvalidVersion, Version

from rocwheel.audit.configuration import Configuration
from rocwheel.audit.distribution_reading import SIGNATURES
from rocwheel.audit.initializer import INITIALIZER, initializer_folder, preload_names, render_initializer
from rocwheel.audit.leftovers import leftovers
from rocwheel.audit.records import record_problems
from rocwheel.audit.release import folders_beyond, release_folders
from rocwheel.audit.repairability import check_repairable
from rocwheel.audit.requirements import required_distributions
from rocwheel.audit.run_path_advice import advise_run_path, choose_folders, library_folders
from rocwheel.audit.run_paths import LibraryPlaces, SetRunpath, run_path_edit
from rocwheel.audit.sdk_layout import find_sdk_library, sdk_folders, sdk_selector
from rocwheel.audit.systems import AllowedLibraries, system_library_patterns
from rocwheel.binary.runpath import RunpathTag
from rocwheel.distributions.tags import lowest_glibc, platform_floor, wheel_platforms
from rocwheel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.audit.run_path_advice import RunPathAdvice
    from rocwheel.audit.tree import Distribution, InstalledFile, Tree
    from rocwheel.distributions.tags import PlatformFloor

__all__ = ["Change", "Pin", "RepairOptions", "RepairPlan", "plan_repair"]

_NO_INIT = "Repair without --init."
_VOID = "dropped, since it signs another RECORD: sign the repaired wheel"

Pin = Literal["none", "minor", "exact"]
"""How requirements that are added name their version: not at all, as ``==1.2.*``, or as ``==1.2.3``."""


class RepairOptions(msgspec.Struct, frozen=True):
    """What a repair is told. ``dlopen`` are libraries that every file of the wheel may open by name."""

    tag: RunpathTag | None = None
    """The tag of all run paths; none to go by what the wheel has (see `plan_repair`)."""
    pin: Pin = "none"
    dlopen: tuple[str, ...] = ()
    init: bool = False
    """Whether the wheel gets ``_rocm_init.py``."""
    settings: Configuration = Configuration()
    """Those of the audit: more system libraries, and what files open by name."""


class Change(msgspec.Struct, frozen=True):
    """One change, for people: where, what, from what to what."""

    file: str
    what: str
    before: str
    after: str


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one wheel. ``edits`` and ``added`` are by the member's name."""

    wheel: str
    file_name: str
    """The repaired wheel's, which its tag may change."""
    edits: dict[str, SetRunpath]
    requires: tuple[str, ...]
    """Requirements to add."""
    tags: tuple[str, ...]
    """The Tag lines of WHEEL; empty where they stay."""
    is_platlib: bool
    """Whether WHEEL has to say that the wheel is no pure one."""
    added: dict[str, str]
    dropped: tuple[str, ...]
    """Members that no longer hold: signatures of RECORD."""
    changes: tuple[Change, ...]
    unmended: tuple[str, ...]
    """What is wrong and needs more than a repair."""


def plan_repair(tree: Tree, owner: Distribution, options: RepairOptions) -> RepairPlan:
    """Plan the repair of one wheel of ``tree``, whose other packages and the SDK are installed beside it.

    Unless the options say otherwise, run paths are RUNPATHs. A right RPATH stays that leads only into packages of the
    wheel's release, as the audit's rule ``rpath-into-others`` asks for; where all run paths are RPATHs and, as
    repaired, lead there alone, those that change stay RPATHs, too: what ``rocwheel build`` makes.

    Raises `InputError`, or `rocwheel.errors.ProblemsError` for several, for wheels that no repair makes installable:
    bad metadata, damaged binaries, symlinks, members outside of the wheel, several files at one path.
    """
    check_repairable(owner, [file for file in tree.files if file.distribution == owner.source])
    return _Planner(tree, owner, options).plan()


class _Planner:
    def __init__(self, tree: Tree, owner: Distribution, options: RepairOptions) -> None:
        self._tree = tree
        self._owner = owner
        self._options = options
        given = {other.name for other in tree.distributions}
        self._sdk = [name for name in dict.fromkeys(f.distribution for f in sdk_folders()) if name not in given]
        self._folders = library_folders(tree, self._sdk)
        self._system = AllowedLibraries((*system_library_patterns(), *options.settings.system_libraries))
        self._files = [file for file in tree.files if file.distribution == owner.source]
        self._loadable = [file for file in self._files if file.is_loadable]
        self._tag = options.tag or (RunpathTag.RPATH if self._keeps_rpath() else RunpathTag.RUNPATH)

    def plan(self) -> RepairPlan:
        edits = {file.member: edit for file in self._loadable if (edit := self._needed_edit(file)) is not None}
        used = self._used_distributions()
        requires = tuple(self._requirement(name) for name in used)
        file_name, tags = self._tags()
        is_platlib = self._owner.is_purelib and bool(self._loadable)
        added = self._initializer()
        changes = (*self._run_path_changes(edits), *self._metadata_changes(requires, tags, added, is_platlib))
        dropped = self._signatures() if changes else ()
        return RepairPlan(
            wheel=self._owner.source,
            file_name=file_name,
            edits=edits,
            requires=requires,
            tags=tags,
            is_platlib=is_platlib,
            added=added,
            dropped=dropped,
            changes=(*changes, *(Change(name, _VOID, "a signature of RECORD", "") for name in dropped)),
            unmended=(*self._unmended(), *leftovers(self._tree, self._owner, edits, self._options.settings)),
        )

    def _signatures(self) -> tuple[str, ...]:
        names = {f"{self._owner.dist_info}/{name}" for name in SIGNATURES}
        return tuple(file.member for file in self._files if file.member in names)

    def _keeps_rpath(self) -> bool:
        """Tell whether all run paths that the wheel has and that a repair leaves are RPATHs within its release."""
        edits = [(file, self._edit(file, RunpathTag.RPATH)) for file in self._loadable]
        values = [(file, file.run_path if edit is None else edit.value) for file, edit in edits]
        if not any(file.run_path for file, _ in values):
            return False
        if any(value and file.elf and file.elf.runpath is not None for file, value in values):
            return False
        return not any(folders_beyond(self._release, value, file.folder) for file, value in values)

    @cached_property
    def _release(self) -> frozenset[str]:
        return release_folders(self._tree, self._owner)

    def _needed_edit(self, file: InstalledFile) -> SetRunpath | None:
        is_old = self._options.tag is None and file.elf is not None and file.elf.runpath is None
        if is_old and not folders_beyond(self._release, file.run_path, file.folder):
            edit = self._edit(file, RunpathTag.RPATH)
            return edit and self._edit(file, self._tag)
        return self._edit(file, self._tag)

    def _edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        assert file.elf is not None
        names = self._names(file)
        search = tuple(choose_folders(names, self._folders, file.folder))
        beyond = self._has_others and (file.elf.imports_dlopen or bool(self._advise(file).missing))
        return run_path_edit(file.elf, file.folder, search, self._places, tag, keep_beyond=beyond)

    def _names(self, file: InstalledFile) -> list[str]:
        """Return what a file needs, and what it opens by name."""
        return [*(file.elf.needed if file.elf else ()), *self._opened(file)]

    def _opened(self, file: InstalledFile) -> tuple[str, ...]:
        return (*self._options.dlopen, *self._options.settings.opened_by(file.path))

    def _advise(self, file: InstalledFile) -> RunPathAdvice:
        assert file.elf is not None
        return advise_run_path(file.elf, file.path, self._folders, self._system, self._opened(file))

    @cached_property
    def _has_others(self) -> bool:
        """Whether the wheel requires packages that are neither at hand nor the SDK's: run paths may lead there."""
        known = {other.name for other in self._tree.distributions} | {*self._sdk, sdk_selector().distribution}
        return bool(required_distributions(self._tree, self._owner) - known)

    @cached_property
    def _places(self) -> LibraryPlaces:
        folders = {folder for found in self._folders.values() for folder in found}
        folders |= {file.folder for file in self._tree.files}
        providers = {name: frozenset(found) for name, found in self._folders.items()}
        return LibraryPlaces(providers, frozenset(folders))

    def _used_distributions(self) -> list[str]:
        """Return the packages that the wheel's libraries load from and that it doesn't require yet, in order."""
        required = required_distributions(self._tree, self._owner)
        names = [name for file in self._loadable for name in self._names(file)]
        used = dict.fromkeys(self._provider(name) for name in names if self._folders.get(name))
        return [name for name in used if name and name != self._owner.name and name not in required]

    def _provider(self, soname: str) -> str:
        owners = self._tree.owners
        holders = [file.distribution for file in self._tree.files if file.name == soname and file.is_loadable]
        if self._owner.source in holders:
            return self._owner.name
        found = next((owners[source].name for source in holders if source in owners), "")
        layout = find_sdk_library(soname)
        return found or (layout.distribution if layout else "")

    def _requirement(self, name: str) -> str:
        version = self._version_to_match(name)
        return f"{name}=={version}" if version else name

    def _version_to_match(self, name: str) -> str:
        found = next((other for other in self._tree.distributions if other.name == name), None)
        if found is None or not found.version or self._options.pin == "none":
            return ""
        try:
            version = Version(found.version)
        except InvalidVersion as e:
            raise InputError(found.source, f"the version {found.version!r}", expected="one by PEP 440") from e
        epoch = f"{version.epoch}!" if version.epoch else ""
        return f"{epoch}{version.major}.{version.minor}.*" if self._options.pin == "minor" else str(version)

    def _tags(self) -> tuple[str, tuple[str, ...]]:
        """Return the file name by what the files ask for, and the tags for WHEEL where they change."""
        label = self._owner.label
        floor = platform_floor((file.path, file.elf) for file in self._files if file.elf is not None)
        stem, python, abi, platform = label.removesuffix(".whl").rsplit("-", 3)
        platforms = platform.split(".")
        if floor is not None and not _is_kept(label, floor):
            platforms = [floor.tag]
        tags = tuple(f"{p}-{a}-{f}" for p in python.split(".") for a in abi.split(".") for f in platforms)
        changed = tags if set(tags) != set(self._owner.tags) else ()
        return f"{stem}-{python}-{abi}-{'.'.join(platforms)}.whl", changed

    def _initializer(self) -> dict[str, str]:
        """Return ``_rocm_init.py`` by its place, unless it is there already."""
        if not (self._options.init and self._loadable):
            return {}
        folder = initializer_folder(self._loadable)
        if not folder:
            found = "has its libraries in no Python package"
            raise InputError(self._owner.source, found, expected=f"one that {INITIALIZER} can go to", remedy=_NO_INIT)
        names, others = preload_names(self._loadable)
        versions = (self._version_to_match(name) for name in ("rocm-sdk-core", "rocm-sdk-libraries"))
        text = render_initializer(names, next(filter(None, versions), ""), others)
        return self._unless_there(f"{folder}/{INITIALIZER}", text)

    def _unless_there(self, path: str, text: str) -> dict[str, str]:
        there = next((file for file in self._files if file.path == path), None)
        if there is None:
            return {path: text}
        if there.sha256 != hashlib.sha256(text.encode()).digest():
            raise InputError(
                there.source,
                "another text than a repair adds",
                remedy="Leave it out when building, or repair without --init.",
            )
        return {}

    def _run_path_changes(self, edits: dict[str, SetRunpath]) -> list[Change]:
        files = {file.member: file for file in self._loadable}
        return [
            Change(name, _tag_words(files[name], edit), files[name].run_path or "", edit.value)
            for name, edit in edits.items()
        ]

    def _metadata_changes(
        self, requires: Sequence[str], tags: Sequence[str], added: dict[str, str], is_platlib: bool
    ) -> list[Change]:
        info = self._owner.dist_info
        changes = [Change(f"{info}/METADATA", "Requires-Dist", "", requirement) for requirement in requires]
        if tags:
            changes.append(Change(f"{info}/WHEEL", "Tag", " ".join(self._owner.tags), " ".join(tags)))
        if is_platlib:
            changes.append(Change(f"{info}/WHEEL", "Root-Is-Purelib", "true", "false"))
        changes += [Change(name, "added", "", f"{len(text)} bytes") for name, text in added.items()]
        return changes + self._record_changes()

    def _record_changes(self) -> list[Change]:
        """Return what is wrong in RECORD alone; whatever else changes, it is written anew."""
        name = f"{self._owner.dist_info}/RECORD"
        if not self._owner.record:
            return [Change(name, "written anew", "none that can be read", "")]
        return [Change(name, "written anew", problem, "") for problem in record_problems(self._owner, self._files)]

    def _unmended(self) -> list[str]:
        found = []
        for file in self._loadable:
            missing = self._advise(file).missing
            found += [f"{file.path} needs {name}, which no package and no system has" for name in missing]
        return found


def _is_kept(file_name: str, floor: PlatformFloor) -> bool:
    """Tell whether tags promise no older glibc than the files run on: what is promised less may have its reason."""
    platforms = wheel_platforms(file_name)
    promised = lowest_glibc(platforms)
    fits = all(platform.endswith(f"_{floor.architecture}") for platform in platforms)
    return fits and promised is not None and promised >= floor.glibc


def _tag_words(file: InstalledFile, edit: SetRunpath) -> str:
    assert file.elf is not None
    before = "RUNPATH" if file.elf.runpath is not None else "RPATH" if file.elf.rpath is not None else ""
    after = edit.tag.name if edit.value else "none"
    return after if before in {"", after} else f"{before} -> {after}"
