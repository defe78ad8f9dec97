"""Warnings about DLLs that planned files load and that nothing brings to the user's machine."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.core.messages import first_of
from rocwheel.core.names import fold_case
from rocwheel.linking.known.windows_libraries import DllKind, kind_of_dll
from rocwheel.packages.plan import FileMember, PlanWarning, TarMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.plan import PlannedWheel

__all__ = ["missing_dlls"]

_SHIP_IT = "Add it to the artifacts of a runtime package, or to system-libraries under [audit] in the recipe."
_NO_DEBUG = "Build for release (/MD instead of /MDd)."


def missing_dlls(
    facts: Facts, groups: Sequence[Sequence[PlannedWheel]], system: Iterable[str]
) -> Iterator[PlanWarning]:
    """Yield a warning for each DLL that is imported, also later, and that no package, Windows or driver has.

    So for the debug run-time libraries of Visual C++: no user has them. ``system`` are patterns of more DLLs that every
    target system has.
    """
    patterns = [fold_case(pattern) for pattern in system]
    found: dict[str, dict[str, None]] = {}
    for wheels in groups:
        shipped = {fold_case(posixpath.basename(path)) for wheel in wheels for path in _paths(wheel)}
        for file in (file for wheel in wheels for file in _files(wheel)):
            pe = facts.images.get(file.source)
            for name in pe.wanted if pe else ():
                key = fold_case(name)
                is_known = key in shipped or kind_of_dll(name) not in {None, DllKind.DEBUG}
                if not is_known and not any(fnmatchcase(key, pattern) for pattern in patterns):
                    found.setdefault(name, {})[file.path] = None
    for name, files in sorted(found.items()):
        yield _warning(name, tuple(files))


def _warning(name: str, files: tuple[str, ...]) -> PlanWarning:
    why, remedy = "but no package has it, and Windows doesn't either", _SHIP_IT
    if kind_of_dll(name) is DllKind.DEBUG:
        why, remedy = "which only machines with Visual Studio have", _NO_DEBUG
    return PlanWarning("missing-library", name, f"needed by {first_of(files, 1)}, {why}", remedy, files)


def _paths(wheel: PlannedWheel) -> Iterator[str]:
    for member in wheel.members:
        yield member.path
        if isinstance(member, TarMember):
            yield from (entry.path for entry in member.entries)


def _files(wheel: PlannedWheel) -> Iterator[FileMember]:
    for member in wheel.members:
        if isinstance(member, FileMember):
            yield member
        elif isinstance(member, TarMember):
            yield from (entry.file for entry in member.entries if entry.file)
