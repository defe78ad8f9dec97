"""What a repair refuses, and what users should know of a repaired wheel before they publish it.

These are wheels that it can't make installable, with damaged binaries or metadata or bad members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.environment.known_libraries import known_package_folders
from rocwheel.environment.run_path_entries import is_build_folder, is_origin_relative, split_run_path
from rocwheel.environment.sdk_layout import layout_releases
from rocwheel.environment.tree import find_conflicts
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.file_names import name_and_version
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.environment.tree import Distribution, InstalledFile
    from rocwheel.repair.outcome import RepairedTree


_AGAIN = "Build the wheel again."
# What a repair writes again, and what installers do without.
_REPAIRABLE = ("RECORD", "WHEEL has no Tag", "WHEEL has no Root-Is-Purelib")


def check_repairable(owner: Distribution, files: Sequence[InstalledFile]) -> None:
    """Raise `InputError` for a wheel that no repair makes installable, or `ProblemsError` for several problems.

    These are metadata that installers refuse, symlinks, binaries that can't be read, members that are installed outside
    of the environment, and several files at one path.
    """
    problems = [*_metadata_problems(owner), *_problems(files)]
    raise_all("wheels that can't be repaired", problems)


def _metadata_problems(owner: Distribution) -> Iterator[InputError]:
    for problem in owner.problems:
        text = problem.found.removeprefix(f"{owner.dist_info} has no ")
        if not text.startswith((*_REPAIRABLE, DECLARATION_NAME)):
            yield InputError(owner.source, problem.found, remedy=_AGAIN)
    (folder, version), (name, _) = name_and_version(owner.dist_info), name_and_version(owner.label)
    if not version or canonicalize_name(folder) != canonicalize_name(name):
        expected = "a .dist-info folder of the wheel's own name"
        yield InputError(owner.source, f"has the metadata folder {owner.dist_info}", expected=expected, remedy=_AGAIN)


def _problems(files: Sequence[InstalledFile]) -> Iterator[InputError]:
    for file in files:
        if file.link is not None:
            yield InputError(file.source, "a symlink", expected="only files", remedy="Build the wheel without it.")
        elif file.problem:
            yield InputError(file.source, file.problem, remedy=_AGAIN)
        elif reason := outside_reason(file.member):
            yield InputError(file.source, reason, expected="a path inside the environment", remedy=_AGAIN)
    for conflict in find_conflicts(files):
        expected = "one file at each path"
        yield InputError(conflict.files[0].source, conflict.found, expected=expected, remedy=_AGAIN)


_OPEN = (
    "Requires-Dist: {0} allows any version, though its libraries are assumed to be those of {1}: give {0} with --with"
)
_OPEN_PACKAGE = (
    "Requires-Dist: {0} allows any version, though extensions work with the {0} that they are built against: give {0} "
    "with --with"
)
_ASSUMED = "Requires-Dist: {} rests on the known layout of the package: give it with --with to pin its minor version"
_MUSL = "is for musl, whose loader finds libraries by other rules: the run paths of {} and the requirements stay"
_WINDOWS = "{} {} for Windows, whose loader knows no run paths, and {}: rocwheel audit says which DLLs it misses"
_UNKNOWN = (
    "{} libraries whose names are not in {} strings, so every folder of the old run path stays that may have one: {}. "
    "--dlopen names them, --toolkit sdk gives up the folders of ROCm"
)
_OTHERS = "is for {}: paths to that stay, and none lead to the SDK's packages unless --toolkit sdk says so"
_KEPT = "{} the paths to libraries that are not at hand, in {}"
_BUILD = (
    "{} {}, as if on the machine that built it: another may have there what nothing else provides. Give what provides "
    "it with --with, or drop the entries with rocwheel runpath set"
)
_INSTEAD = "is for {}: {}. --toolkit sdk would lead to the SDK's packages instead, for every library that they have"


def assumed_version_note(requirement: str, *, is_open: bool) -> str:
    """Return a note on a requirement of a package that is not at hand; ``is_open``: it names no version."""
    if any(requirement == folder.distribution for folder in known_package_folders()):
        return _OPEN_PACKAGE.format(requirement)
    releases = f"ROCm {' and '.join(map(str, layout_releases()))}"
    return (_OPEN if is_open else _ASSUMED).format(requirement, releases)


def musl_note(files: Sequence[InstalledFile]) -> str:
    """Return a note on the files of a wheel for musl; empty if none has a run path or needs other libraries."""
    return _MUSL.format(count(len(files), "file")) if files else ""


def windows_note(owner: Distribution, files: Iterable[InstalledFile]) -> str:
    """Return a note on the DLLs and programs for Windows; empty where programs alone are data of other wheels."""
    found = [file for file in files if file.windows is not None]
    if not found or not (owner.layout.is_windows or any(file.is_windows_code for file in found)):
        return ""
    few = len(found) == 1
    return _WINDOWS.format(count(len(found), "file"), *("is", "stays") if few else ("are", "stay"))


def unknown_names_note(paths: Sequence[str]) -> str:
    """Return a note on files that keep folders since nobody knows what they open by name; empty if there are none."""
    opens, whose = ("opens", "its") if len(paths) == 1 else ("open", "their")
    found = f"{count(len(paths), 'file')} {opens}"
    return _UNKNOWN.format(found, whose, first_of(paths)) if paths else ""


def build_folders_note(run_paths: Iterable[str]) -> str:
    """Return a note on the folders of the building machine that repaired run paths keep; empty if there are none."""
    found = [[entry for entry in split_run_path(value) if _is_of_build(entry)] for value in run_paths]
    folders = dict.fromkeys(entry for entries in found for entry in entries)
    files = sum(map(bool, found))
    return _BUILD.format(count(files, "file searches", "files search"), first_of([*folders])) if files else ""


def _is_of_build(entry: str) -> bool:
    """Return whether an entry leads to a folder of the building machine; from ``$ORIGIN`` the way is to packages."""
    return is_build_folder(entry) and not is_origin_relative(entry)


def toolkit_note(repaired: RepairedTree, owner: Distribution) -> str:
    """Return a note on what a wheel leaves to the machine's toolkits; empty if it leaves nothing."""
    reason = repaired.toolkits[owner.source].reason
    found = repaired.kept_for_system(owner)
    if not found:
        return _OTHERS.format(reason) if reason else ""
    folders = dict.fromkeys(place for finds in found.values() for one in finds for place in one.place.split(":"))
    kept = _KEPT.format(count(len(found), "file keeps", "files keep"), first_of([*folders]))
    return _INSTEAD.format(reason, kept) if reason else f"as asked, {kept}"
