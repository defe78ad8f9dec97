"""Whether a build can make all that is expected, and its files can be installed, checked before anything is written."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rocwheel.binary.platform import Platform
from rocwheel.build.plan import PlanWarning, TarMember
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.messages import count
from rocwheel.core.names import LONGEST_PATH, SHORTEST_SITE, find_case_clashes, path_fault, path_length, room_above
from rocwheel.targets.catalog.families import is_family, targets_of
from rocwheel.wheels.sdist import sdist_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.build.plan import Plan, PlannedWheel
    from rocwheel.build.planning.options import ExpectedTarget
    from rocwheel.build.planning.packages import PlacedPackage
    from rocwheel.build.recipe import Layout, Recipe


_RENAME = "Rename it, or leave it out by the recipe (leave-out)."
_SHORTEN = "Shorten its folders or its name, or leave it out by the recipe (leave-out)."


def windows_path_problems(wheels: Iterable[PlannedWheel]) -> Iterator[InputError]:
    """Yield a problem for each path that Windows refuses, takes for another one, or finds too long anywhere."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for wheel in wheels:
        groups[wheel.folder] |= dict.fromkeys(_installed_paths(wheel))
    shared = groups.pop("", {})
    for path in dict.fromkeys(path for paths in (shared, *groups.values()) for path in paths):
        yield from _windows_refusals(path)
    for paths in list(groups.values()) or [{}]:
        for clash in find_case_clashes([*shared, *paths]):
            found = f"differs from {', '.join(clash[1:])} only in case: Windows has one file for both"
            yield InputError(clash[0], found, remedy=_RENAME)


def _windows_refusals(path: str) -> Iterator[InputError]:
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


_NAME_MAX = 255
_OUTPUT_MAX = _NAME_MAX - 10
"""Room for the dots and letters that a file has in its name while it is written."""
_PATH_MAX = 4096
_SITE_MAX = 512
"""Room for the path of site-packages."""
_SHOWN = 100


def check_complete(
    root: str,
    recipe: Recipe,
    layout: Layout,
    placed: Sequence[PlacedPackage],
    expected_targets: Sequence[ExpectedTarget],
) -> None:
    """Raise `ProblemsError` with every required package without files and every expected target without packages."""
    problems = [
        *_missing_packages(root, recipe, layout, placed),
        *_missing_targets(root, placed, expected_targets),
        *_shared_places(placed),
        *_files_above_files(placed),
    ]
    if problems:
        raise ProblemsError(root, problems)


def _missing_packages(
    root: str, recipe: Recipe, layout: Layout, placed: Sequence[PlacedPackage]
) -> Iterator[InputError]:
    present = {package.key for package in placed}
    for key, package in recipe.packages.items():
        if package.required and key not in present and package.distribution_in(layout) is not None:
            names = sorted({name for take in package.take for name in take.artifacts})
            found = f"has no files for the package {key}"
            yield InputError(root, found, expected=f"one of the artifacts {', '.join(names)}")


def _missing_targets(
    root: str, placed: Sequence[PlacedPackage], expected: Sequence[ExpectedTarget]
) -> Iterator[InputError]:
    variants = {package.variant for package in placed if package.variant}
    present = {target for variant in variants for target in _members(variant)}
    absent: dict[tuple[str, str], list[str]] = {}
    for target in expected:
        if target.processor not in present:
            absent.setdefault((target.option, target.word), []).append(target.processor)
    listed = ", ".join(sorted(variants)) or "none"
    for (option, word), targets in absent.items():
        asked = "" if targets == [word] else f", which {option} {word} asks for"
        found = f"has no artifacts for the expected target{'s' * (len(targets) > 1)} {', '.join(targets)}{asked}"
        remedy = f"Add {'its' if len(targets) == 1 else 'their'} artifacts, or take {word} out of {option}."
        yield InputError(root, found, expected=f"them in addition to those for: {listed}", remedy=remedy)


def _members(variant: str) -> tuple[str, ...]:
    return (variant, *targets_of(variant)) if is_family(variant) else (variant,)


def _shared_places(placed: Sequence[PlacedPackage]) -> Iterator[InputError]:
    """Yield a problem for each place in site-packages that two distributions would own."""
    owners: dict[str, PlacedPackage] = {}
    for package in placed:
        for path in (*package.placement.files, *package.placement.stubs):
            place = f"{package.platform_module}/{path}"
            owner = owners.setdefault(place, package)
            if owner is not package:
                found = f"would belong to both {owner.distribution} and {package.distribution}"
                yield InputError(place, found, remedy="Exclude it from one of them in the recipe.")


def _files_above_files(placed: Sequence[PlacedPackage]) -> Iterator[InputError]:
    """Yield a problem for each file whose place is also a folder, as when a SONAME is the name of a folder."""
    for package in placed:
        places = {*package.placement.files, *package.placement.stubs}
        for path in sorted(places):
            above = next((str(folder) for folder in PurePosixPath(path).parents if str(folder) in places), None)
            if above is not None:
                found = f"is a file, and also the folder of {path}"
                place = f"{package.platform_module}/{above}"
                yield InputError(place, found, remedy="Rename one of them, or exclude it in the recipe.")


def check_names(plan: Plan) -> None:
    """Raise `ProblemsError` with every file whose name or path can't be written or installed, such as by its length."""
    outputs = [wheel.name.file_name for wheel in plan.wheels]
    outputs += [sdist_name(sdist.distribution, sdist.version) for sdist in plan.sdists]
    paths = dict.fromkeys(path for wheel in plan.wheels for path in _paths(wheel))
    problems = [
        *(problem for name in outputs for problem in _long_name(name, _OUTPUT_MAX, "Shorten --version or the name.")),
        *(problem for path in paths for problem in _path_problems(path)),
        *(windows_path_problems(plan.wheels) if plan.platform is Platform.WINDOWS else ()),
    ]
    if problems:
        subject = "names of files"
        raise ProblemsError(subject, problems)


def _paths(wheel: PlannedWheel) -> Iterator[str]:
    for member in wheel.members:
        yield member.path
        if isinstance(member, TarMember):
            yield from (entry.path for entry in member.entries)
    yield from (f"{wheel.name.dist_info}/licenses/{text.path}" for text in wheel.licenses)


def _path_problems(path: str) -> Iterator[InputError]:
    remedy = "Rename it, or exclude it in the recipe."
    yield from _long_name(path, _NAME_MAX, remedy)
    length, limit = len(os.fsencode(path)), _PATH_MAX - _SITE_MAX
    if length > limit:
        expected = f"at most {limit}, as Linux allows {_PATH_MAX} together with the path of site-packages"
        yield InputError(_shown(path), f"is a path of {count(length, 'byte')}", expected=expected, remedy=remedy)


def _long_name(path: str, limit: int, remedy: str) -> Iterator[InputError]:
    length = max(len(os.fsencode(name)) for name in path.split("/"))
    if length > limit:
        yield InputError(
            _shown(path), f"has a name of {count(length, 'byte')}", expected=f"at most {limit}", remedy=remedy
        )


def _shown(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
