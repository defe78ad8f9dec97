"""Whether planned files can be installed on Windows: their names, names that differ only in case, lengths of paths."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.names import LONGEST_PATH, SHORTEST_SITE, find_case_clashes, path_fault, path_length, room_above
from rocwheel.packages.plan import PlanWarning, TarMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.packages.plan import PlannedWheel

__all__ = ["long_paths", "windows_path_problems"]

_RENAME = "Rename it, or leave it out by the recipe (leave-out)."
_SHORTEN = "Shorten its folders or its name, or leave it out by the recipe (leave-out)."


def windows_path_problems(wheels: Iterable[PlannedWheel]) -> Iterator[InputError]:
    """Yield a problem for each path that Windows refuses, takes for another one, or finds too long anywhere."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for wheel in wheels:
        groups[wheel.folder] |= dict.fromkeys(_installed_paths(wheel))
    shared = groups.pop("", {})
    for path in dict.fromkeys(path for paths in (shared, *groups.values()) for path in paths):
        yield from _path_problems(path)
    for paths in list(groups.values()) or [{}]:
        for clash in find_case_clashes([*shared, *paths]):
            found = f"differs from {', '.join(clash[1:])} only in case: Windows has one file for both"
            yield InputError(clash[0], found, remedy=_RENAME)


def _path_problems(path: str) -> Iterator[InputError]:
    if fault := path_fault(path):
        yield InputError(path, fault, expected="names that Windows takes", remedy=_RENAME)
    if room_above(path) < SHORTEST_SITE:
        expected = f"at most {room_above('') - SHORTEST_SITE}: Windows takes {LONGEST_PATH} with site-packages"
        yield InputError(
            path, f"is a path of {count(path_length(path), 'character')}", expected=expected, remedy=_SHORTEN
        )


def long_paths(groups: Sequence[Sequence[PlannedWheel]], wanted: int) -> Iterator[PlanWarning]:
    """Yield a warning for each wheel whose longest path leaves less than ``wanted`` characters to site-packages."""
    for wheel in {wheel.name.file_name: wheel for wheels in groups for wheel in wheels}.values():
        files = sorted(_installed_paths(wheel), key=lambda path: (-path_length(path), path))
        long = tuple(path for path in files if room_above(path) < wanted)
        if long:
            room = room_above(long[0])
            found = f"has {count(len(long), 'path')} that leave site-packages less than {wanted} characters; "
            found += f"the longest leaves {room}: {long[0]}"
            yield PlanWarning("long-path", wheel.name.file_name, found, _SHORTEN, long)


def _installed_paths(wheel: PlannedWheel) -> Iterator[str]:
    """Yield the path of each file that a wheel puts into site-packages, those of its devel tree included."""
    for member in wheel.members:
        yield member.path
        if isinstance(member, TarMember):
            yield from (entry.path for entry in member.entries)
            yield from member.links
    yield from (f"{wheel.name.dist_info}/licenses/{text.path}" for text in wheel.licenses)
