"""Finds problems that prevent a repair, and notes that users should read before they publish a repaired wheel.

A repair rejects wheels that it can't make installable, such as wheels with damaged binaries, damaged metadata, or
invalid members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.environment.check_record import wheel_record_problems
from rocwheel.environment.known_libraries import known_package_folders
from rocwheel.environment.run_path_entries import is_build_folder, is_origin_relative, split_run_path
from rocwheel.environment.sdk_layout import layout_releases
from rocwheel.environment.tree import find_conflicts
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.record import record_errors
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.environment.tree import Distribution, InstalledFile
    from rocwheel.repair.outcome import RepairedTree


_AGAIN = "Build the wheel again."
# Problems in metadata that a repair rewrites and that installers don't need.
_REPAIRABLE = ("WHEEL has no Tag", "WHEEL has no Root-Is-Purelib")


def check_repairable(owner: Distribution, files: Sequence[InstalledFile]) -> None:
    """Raise `InputError` for a wheel that no repair makes installable, or `ProblemsError` for several problems.

    The problems are metadata that installers reject, symbolic links, unreadable binaries, members that are installed
    outside of the environment, and several files with the same path. A RECORD that doesn't match the members is also a
    problem, because the new RECORD would hide that the files were modified.
    """
    wrong = [one for one in wheel_record_problems(owner, files) if one.kind != "spelling"] if owner.record else []
    problems = [
        *_metadata_problems(owner),
        *_problems(files),
        *record_errors(f"{owner.source}!{owner.dist_info}/RECORD", wrong),
    ]
    raise_all("wheels that can't be repaired", problems)


def _metadata_problems(owner: Distribution) -> Iterator[InputError]:
    for problem in owner.problems:
        text = problem.found.removeprefix(f"{owner.dist_info} has no ")
        if not text.startswith((*_REPAIRABLE, DECLARATION_NAME)):
            yield InputError(owner.source, problem.found, remedy=_AGAIN)
    for problem in owner.script_problems:
        if problem.facts[0] != "script":  # Installers accept commands whose functions are missing.
            yield InputError(owner.source, problem.found, remedy=_AGAIN)


def _problems(files: Sequence[InstalledFile]) -> Iterator[InputError]:
    for file in files:
        if file.link is not None:
            yield InputError(
                file.source, "is a symlink", expected="only files", remedy="Build the wheel without the symlink."
            )
        elif file.problem:
            yield InputError(file.source, file.problem, remedy=_AGAIN)
        elif reason := outside_reason(file.member):
            yield InputError(file.source, reason, expected="a path inside the environment", remedy=_AGAIN)
    for conflict in find_conflicts(files):
        expected = "only one file at each path"
        yield InputError(conflict.files[0].source, conflict.found, expected=expected, remedy=_AGAIN)


_OPEN = "Requires-Dist: {0} allows any version, but the repair assumes the libraries in {1}: add {0} with --with"
_OPEN_PACKAGE = (
    "Requires-Dist: {0} allows any version, but extension modules work only with the {0} version that they were built "
    "with: add {0} with --with"
)
_ASSUMED = (
    "Requires-Dist: {} is based on the package's known layout: to pin its minor version, add the package with --with"
)
_MUSL = "is for musl, whose loader has different rules: the run paths of {} and the requirements don't change"
_WINDOWS = "{} {} for Windows, which has no run paths, and {}: 'rocwheel audit' finds missing DLLs"
_UNKNOWN = (
    "{} libraries whose names aren't in {} strings, so the run path keeps every folder that may contain one: {}. "
    "Pass the libraries with --dlopen, or drop the ROCm folders with --toolkit sdk"
)
_OTHERS = "is for {}: run paths keep its folders. To use the SDK's packages instead, add --toolkit sdk"
_KEPT = "{} the run paths to libraries that weren't specified, in {}"
_BUILD = (
    "{} {}, a path from the build machine, because other machines may have the missing libraries in that folder. "
    "Add the packages with these libraries with --with, or remove the entries with 'rocwheel runpath set'"
)
_NEWER = "is for {}: run paths keep its folders. To correct the run paths, add the wheels of that SDK with --with"
_INSTEAD = "is for {}: {}. To use the SDK's packages for every library that they have, add --toolkit sdk"


def assumed_version_note(requirement: str, *, is_open: bool) -> str:
    """Return a note about the requirement for a package that isn't given.

    If ``is_open`` is true, the requirement has no version.
    """
    if any(requirement == folder.distribution for folder in known_package_folders()):
        return _OPEN_PACKAGE.format(requirement)
    releases = f"ROCm {' and '.join(map(str, layout_releases()))}"
    return (_OPEN if is_open else _ASSUMED).format(requirement, releases)


def musl_note(files: Sequence[InstalledFile]) -> str:
    """Return a note about the files in a wheel for musl.

    Return an empty string if no file has a run path or needs other libraries.
    """
    return _MUSL.format(count(len(files), "file")) if files else ""


def windows_note(owner: Distribution, files: Iterable[InstalledFile]) -> str:
    """Return a note about Windows DLLs and programs.

    Return an empty string if a wheel for another system contains programs only as data.
    """
    found = [file for file in files if file.windows is not None]
    if not found or not (owner.layout.is_windows or any(file.is_windows_code for file in found)):
        return ""
    few = len(found) == 1
    return _WINDOWS.format(count(len(found), "file"), *("is", "doesn't change") if few else ("are", "don't change"))


def unknown_names_note(paths: Sequence[str]) -> str:
    """Return a note about files that open unknown libraries and therefore retain folders, or an empty string."""
    opens, whose = ("opens", "its") if len(paths) == 1 else ("open", "their")
    found = f"{count(len(paths), 'file')} {opens}"
    return _UNKNOWN.format(found, whose, first_of(paths)) if paths else ""


def build_folders_note(run_paths: Iterable[str]) -> str:
    """Return a note about folders on the build machine that remain in repaired run paths, or an empty string."""
    found = [[entry for entry in split_run_path(value) if _is_of_build(entry)] for value in run_paths]
    folders = dict.fromkeys(entry for entries in found for entry in entries)
    files = sum(map(bool, found))
    return _BUILD.format(count(files, "file searches", "files search"), first_of([*folders])) if files else ""


def _is_of_build(entry: str) -> bool:
    """Return whether a run path entry points to a folder on the build machine.

    ``$ORIGIN`` entries point to packages.
    """
    return is_build_folder(entry) and not is_origin_relative(entry)


def toolkit_note(repaired: RepairedTree, owner: Distribution) -> str:
    """Return a note about libraries that a wheel uses from the machine's toolkits, or an empty string."""
    toolkit, found = repaired.toolkits[owner.source], repaired.kept_for_system(owner)
    reason = toolkit.reason
    if toolkit.is_newer:
        return _NEWER.format(reason)
    if not found:
        return _OTHERS.format(reason) if reason else ""
    folders = dict.fromkeys(place for finds in found.values() for one in finds for place in one.place.split(":"))
    kept = _KEPT.format(count(len(found), "file keeps", "files keep"), first_of([*folders]))
    return _INSTEAD.format(reason, kept) if reason else f"as requested, {kept}"
