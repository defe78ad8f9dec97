"""Rules about paths in Windows packages: names that the file system rejects or confuses, and long paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.core.messages import count
from rocwheel.core.names import (
    LONGEST_PATH,
    SHORTEST_SITE,
    find_case_clashes,
    path_length,
    room_above,
    windows_path_fault,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import InstalledFile

_TENSILE_LONGEST = 174
"""The maximum length of a path in a kernel folder.

rocBLAS fails with longer paths (lemonade-sdk, pull request 3473).
"""
_TENSILE_FOLDERS = ("rocblas/library", "hipblaslt/library")
_PACKAGE_FOLDER = "_rocm_sdk_libraries/"
"""The longest folder name that packing adds before a path in a prefix."""


def _refused(subject: Subject) -> Iterator[Evidence]:
    for path, file in _audited(subject):
        if not (fault := windows_path_fault(path)):
            continue
        if path == file.path:
            yield Evidence(file.source, f"can't be installed: {fault}")
        else:
            yield Evidence(file.source, f"contains {path}, which can't be extracted: {fault}", facts=(path,))


def _audited(subject: Subject) -> list[tuple[str, InstalledFile]]:
    """Return each path that Windows must accept, together with its file or the packed file that contains it."""
    return [(path, file) for path, file in subject.windows.places if not subject.tree.is_context(file)]


def _cases(subject: Subject) -> Iterator[Evidence]:
    audited = dict(reversed(_audited(subject)))
    if not audited:
        return
    for paths in find_case_clashes(path for path, _ in subject.windows.places):
        named = [path for path in paths if path in audited]
        if named:
            others = [path for path in paths if path != named[0]]
            found = f"differs from {', '.join(others)} only in case: Windows treats these paths as one file"
            file = audited[named[0]]
            if named[0] == file.path:
                yield Evidence(file.source, found, facts=(*others,))
            else:
                yield Evidence(file.source, f"contains {named[0]}, which {found}", facts=paths)


def _long(subject: Subject) -> Iterator[Evidence]:
    """Find paths that leave too little room for the path of site-packages, and yield one finding for each package."""
    wanted = subject.settings.site_packages_length
    for places in _by_owner(subject):
        path, longest = max(places, key=lambda place: path_length(place[0]))
        room = room_above(path)
        if room >= wanted:
            continue
        number = sum(room_above(path) < wanted for path, _ in places)
        more = f"; paths of {count(number - 1, 'more file')} also leave fewer than {wanted}" if number > 1 else ""
        packed = "" if path == _installed(subject, longest) else f" when packed ({path}),"
        found = f"has a path of {count(path_length(path), 'character')}{packed}"
        found += f"{'' if packed else ','} which leaves {max(room, 0)} for the path of site-packages{more}"
        severity = Severity.ERROR if room < SHORTEST_SITE else None
        yield Evidence(longest.source, found, severity=severity)


def _by_owner(subject: Subject) -> list[list[tuple[str, InstalledFile]]]:
    """Return each package's distinct paths in site-packages, with their files."""
    found: dict[str, dict[str, InstalledFile]] = {}
    for path, file in _audited(subject):
        # Scripts and data are in folders above site-packages, so they have more room.
        if not path.startswith("../"):
            installed = _installed(subject, file) if path == file.path else path
            found.setdefault(file.distribution, {}).setdefault(installed, file)
    return [list(places.items()) for places in found.values()]


def _installed(subject: Subject, file: InstalledFile) -> str:
    return f"{_PACKAGE_FOLDER}{file.path}" if subject.tree.is_prefix else file.path


def _kernels(subject: Subject) -> Iterator[Evidence]:
    wanted = subject.settings.site_packages_length
    seen = set()
    for file in subject.tree.audited if subject.windows.is_platform else ():
        folder = next(
            (f"{file.path.partition(f'/{name}/')[0]}/{name}" for name in _TENSILE_FOLDERS if f"/{name}/" in file.path),
            "",
        )
        if not folder or folder in seen:
            continue
        seen.add(folder)
        installed = f"{_PACKAGE_FOLDER}{folder}" if subject.tree.is_prefix else folder
        room = room_above(installed, _TENSILE_LONGEST)
        if room < wanted:
            found = (
                f"is in {folder}, where rocBLAS finds kernels only if their paths have at most {_TENSILE_LONGEST} "
                "characters"
            )
            yield Evidence(file.source, f"{found}: this limit leaves {max(room, 0)} for the path of site-packages")


_SHORTEN = "Shorten the file name or its folders. The setting site-packages-length defines the required room."

RULES = (
    Rule(
        "windows-name",
        Severity.ERROR,
        "Every file name is valid on Windows.",
        "Rename the file and update all references. Replace invalid characters with '-' or '_'.",
        _refused,
    ),
    Rule(
        "windows-case",
        Severity.ERROR,
        "No two paths differ only in case.",
        "Rename one of the files. On Windows, the last installed file replaces the other.",
        _cases,
    ),
    Rule(
        "windows-path",
        Severity.WARNING,
        f"No path, including the path of site-packages, exceeds Windows' limit of {LONGEST_PATH} characters.",
        _SHORTEN,
        _long,
    ),
    Rule(
        "windows-kernels",
        Severity.WARNING,
        f"No path in a kernel folder, including the path of site-packages, exceeds {_TENSILE_LONGEST} characters.",
        _SHORTEN,
        _kernels,
    ),
)
