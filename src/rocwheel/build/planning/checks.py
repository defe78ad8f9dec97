"""Checks that the expected packages are complete and finds probable mistakes, before anything is written."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import PrefixIndex, describe_end, resolve_link
from rocwheel.binary.platform import Platform
from rocwheel.build.plan import FileMember, PlannedWheel, PlanWarning, TarMember, member_files, member_paths
from rocwheel.build.planning.options import FAMILY_OPTIONS
from rocwheel.build.planning.wheels import lacking_relays, members_floor
from rocwheel.build.recipe import is_per_variant, load_recipe
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.messages import count, first_of, shortened
from rocwheel.core.names import (
    LONGEST_PATH,
    SHORTEST_SITE,
    find_case_clashes,
    fold_case,
    path_length,
    room_above,
    windows_path_fault,
)
from rocwheel.core.workers import raise_all
from rocwheel.environment.known_libraries import DllKind, allowed_libraries, gnu_import_libraries, kind_of_dll
from rocwheel.targets.catalog import check_family, is_family, targets_of
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.wheels.file_names import wheel_platforms
from rocwheel.wheels.requirements import RequirementError, is_refusing, parse_requirement
from rocwheel.wheels.sdist import sdist_name
from rocwheel.wheels.tags import lowest_glibc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.build.file_facts import Facts
    from rocwheel.build.plan import Plan
    from rocwheel.build.planning.options import ExpectedTarget
    from rocwheel.build.planning.packages import PlacedPackage, PlanBasis
    from rocwheel.build.recipe import Layout, Recipe


_NAME_MAX = 255
_OUTPUT_MAX = _NAME_MAX - 10
"""The maximum length of a file name.

The temporary name of a file that is being written is up to ten characters longer.
"""
_PATH_MAX = 4096
_SITE_MAX = 512
"""The space that is reserved for the path of site-packages."""
_SHOWN = 100


def check_complete(
    root: str,
    recipe: Recipe,
    layout: Layout,
    placed: Sequence[PlacedPackage],
    expected_targets: Sequence[ExpectedTarget],
) -> None:
    """Raise `ProblemsError` if required packages have no files, or if expected targets have no packages.

    The error also lists paths that would belong to two packages, and files whose path is also a folder.
    """
    problems = [
        *_missing_packages(root, recipe, layout, placed),
        *_missing_targets(root, {package.variant for package in placed if package.variant}, expected_targets),
        *_shared_places(placed),
        *_files_above_files(placed),
    ]
    if problems:
        raise ProblemsError(root, problems)


def check_release(root: str, basis: PlanBasis, placed: Sequence[PlacedPackage]) -> None:
    """Raise `ProblemsError` if these artifacts lack packages that the selector for both platforms requires.

    Raises `InputError` if the recipe's selector must require a package but doesn't.

    The builds for both platforms write the same selector. So it requires the same packages, regardless of each build's
    artifacts.
    """
    _check_required(basis, placed)
    if basis.release is None:
        return
    present = {package.key for package in placed}
    selector = basis.recipe.selector
    named = dict.fromkeys((*selector.requires, *(key for keys in selector.extras.values() for key in keys)))
    absent = [key for key in named if key not in present and basis.recipe.packages[key].kind != "device"]
    expected = "at least one file, because rocm requires the package on both platforms"
    remedy = "Add its artifacts, remove it from the recipe, or build each platform with only its own list of GPUs."
    problems = [
        InputError(root, f"has no files for the package {key}", expected=expected, remedy=remedy) for key in absent
    ]
    if problems:
        raise ProblemsError(root, problems)


def _check_required(basis: PlanBasis, placed: Sequence[PlacedPackage]) -> None:
    """Raise `InputError` if the recipe's selector must require a package but doesn't."""
    selector = basis.recipe.selector
    if selector.requires:
        return
    chosen = {key for keys in selector.extras.values() for key in keys}
    found = ""
    if basis.release is not None:
        found = "requires no package, but a package must list the libraries for each platform"
    elif basis.layout == "neutral" and any(package.variant and package.key in chosen for package in placed):
        found = "requires no package, but the extras for GPU targets without device code need a package"
    if found:
        source = "[selector]"
        raise InputError(source, found, expected='requires = ["core"]', remedy="Correct the recipe.")


def check_selector(info: Mapping[str, Any], wheels: Iterable[PlannedWheel], basis: PlanBasis, *, decides: bool) -> None:
    """Raise `ProblemsError` with every requirement of the selector that installers can't read or can't satisfy.

    ``info`` contains the literals of the selector's ``_build_info.py``, and ``wheels`` are installed together with it.
    ``decides`` is true if the selector decides at install time. Requirements for other platforms are only parsed.
    """
    source, remedy = "rocm", "Correct [selector] in the recipe."
    chosen = [*info.get("REQUIRES_SELECTED", ()), *info["SELECTED"].values()]
    first = basis.recipe.selector.requires[:1]
    is_first_fixed = not any(is_per_variant(basis.recipe.packages[key], basis.layout) for key in first)
    if info.get("REQUIRES_SELECTED") and not (decides and is_first_fixed):
        found = f"requires {', '.join(info['REQUIRES_SELECTED'])}, which depends on the GPU"
        expected = (
            "a package for all GPUs before that package"
            if decides
            else "--selector sdist, because a wheel can't choose a package"
        )
        source = "rocm: requires"
        raise InputError(source, found, expected=expected, remedy=remedy)
    there = {canonicalize_name(wheel.metadata.name) for wheel in wheels}
    system = basis.facts.platform.sys_platform
    here = [family for family, row in info["FAMILIES"].items() if system in row["platforms"]]
    texts = [(text, "") for text in info["REQUIRES"]]
    texts += [(text.replace("{family}", family), "") for text in chosen for family in here]
    texts += [(text, marker) for rows in info["EXTRAS"].values() for text, marker in rows]
    problems = []
    for text, marker in dict.fromkeys(texts):
        try:
            requirement = parse_requirement(f"{text}; {marker}" if marker else text)
        except RequirementError as e:
            found = f"would require {text!r}, which installers can't read ({e})"
            problems.append(InputError(source, shortened(found), remedy=remedy))
            continue
        is_here = requirement.marker is None or requirement.marker.evaluate({"sys_platform": system, "extra": ""})
        if is_here and not is_refusing(requirement) and canonicalize_name(requirement.name) not in there:
            found = f"would require {text}, which this build doesn't create"
            problems.append(InputError(source, found, remedy=remedy))
    raise_all("rocm requirements", problems)


def unlisted_targets(basis: PlanBasis, placed: Sequence[PlacedPackage]) -> Iterator[PlanWarning]:
    """Yield a warning about device packages that the selector of both platforms can't select."""
    if basis.release is None:
        return
    listed = basis.release.targets[basis.facts.platform]
    devices = [package for package in placed if basis.recipe.packages[package.key].kind == "device"]
    names = [package.distribution for package in devices if package.variant not in listed]
    if names:
        found = f"has no extra for {first_of(names)}, because no list of families contains their targets"
        remedy = f"Add the targets to {FAMILY_OPTIONS[basis.facts.platform]} in the builds for both platforms."
        yield PlanWarning("unlisted-target", "rocm", found, remedy)


def _missing_packages(
    root: str, recipe: Recipe, layout: Layout, placed: Sequence[PlacedPackage]
) -> Iterator[InputError]:
    present = {package.key for package in placed}
    for key, package in recipe.packages.items():
        if package.required and key not in present and package.distribution_in(layout) is not None:
            names = sorted({name for take in package.take for name in take.artifacts})
            found = f"has no files for the package {key}"
            yield InputError(root, found, expected=f"at least one of the artifacts {', '.join(names)}")


def check_targets(root: str, variants: Collection[str], expected: Sequence[ExpectedTarget]) -> None:
    """Raise `ProblemsError` with every expected target that is not in ``variants``, which are targets and families."""
    if problems := list(_missing_targets(root, variants, expected)):
        raise ProblemsError(root, problems)


def _missing_targets(root: str, variants: Collection[str], expected: Sequence[ExpectedTarget]) -> Iterator[InputError]:
    present = {*variants, *(target for variant in variants if is_family(variant) for target in targets_of(variant))}
    absent: dict[tuple[str, str], list[str]] = {}
    for target in expected:
        if target.processor not in present:
            absent.setdefault((target.option, target.word), []).append(target.processor)
    listed = ", ".join(sorted(variants))
    for (option, word), targets in absent.items():
        asked = "" if targets == [word] else f" (from {option} {word})"
        found = f"has no artifacts for {', '.join(targets)}{asked}"
        remedy = f"Add {'its' if len(targets) == 1 else 'their'} artifacts, or remove {word} from {option}."
        yield InputError(
            root, found, expected=f"one of {listed}" if listed else "artifacts for GPU targets", remedy=remedy
        )


def _shared_places(placed: Sequence[PlacedPackage]) -> Iterator[InputError]:
    """Yield an error for each path in site-packages that would belong to two distributions."""
    owners: dict[str, PlacedPackage] = {}
    for package in placed:
        for path in package.placement.paths:
            place = f"{package.platform_module}/{path}"
            owner = owners.setdefault(place, package)
            if owner is not package:
                found = f"would belong to both {owner.distribution} and {package.distribution}"
                yield InputError(place, found, remedy="Exclude the file from one of the packages in the recipe.")


def _files_above_files(placed: Sequence[PlacedPackage]) -> Iterator[InputError]:
    """Yield an error for each file whose path is also a folder, for example, a SONAME that is also a folder's name."""
    for package in placed:
        places = package.placement.paths
        for path in sorted(places):
            above = next((str(folder) for folder in PurePosixPath(path).parents if str(folder) in places), None)
            if above is not None:
                found = f"would be both a file and the folder that contains {path}"
                place = f"{package.platform_module}/{above}"
                yield InputError(place, found, remedy="Rename one of them, or exclude one of them in the recipe.")


def check_names(plan: Plan) -> None:
    """Raise `ProblemsError` with every name or path that is invalid or too long to be written or installed."""
    outputs = [wheel.name.file_name for wheel in plan.wheels]
    outputs += [sdist_name(sdist.distribution, sdist.version) for sdist in plan.sdists]
    paths = dict.fromkeys(path for wheel in plan.wheels for path in _installed_paths(wheel))
    problems = [
        *(
            problem
            for name in outputs
            for problem in _long_name(name, _OUTPUT_MAX, "Shorten the name, or choose a shorter --version.")
        ),
        *(problem for path in paths for problem in _path_problems(path)),
        *(windows_path_problems(plan.wheels) if plan.platform is Platform.WINDOWS else ()),
    ]
    if problems:
        subject = "file names"
        raise ProblemsError(subject, problems)


def _installed_paths(wheel: PlannedWheel) -> Iterator[str]:
    """Yield the path of each file that a wheel installs into site-packages, including the files of its devel tree."""
    for member in wheel.members:
        yield from member_paths(member)
        if isinstance(member, TarMember):
            yield from member.links
    yield from (f"{wheel.name.dist_info}/licenses/{text.path}" for text in wheel.licenses)


def _path_problems(path: str) -> Iterator[InputError]:
    remedy = "Rename the file, or exclude it in the recipe."
    yield from _long_name(path, _NAME_MAX, remedy)
    length, limit = len(os.fsencode(path)), _PATH_MAX - _SITE_MAX
    if length > limit:
        expected = f"at most {limit}, because Linux allows {_PATH_MAX}, including the path of site-packages"
        yield InputError(_shown(path), f"is {count(length, 'byte')} long", expected=expected, remedy=remedy)


def _long_name(path: str, limit: int, remedy: str) -> Iterator[InputError]:
    length = max(len(os.fsencode(name)) for name in path.split("/"))
    if length > limit:
        yield InputError(
            _shown(path), f"has a name that is {count(length, 'byte')} long", expected=f"at most {limit}", remedy=remedy
        )


def _shown(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."


_RENAME = "Rename the file, or leave it out with leave-out in the recipe."
_SHORTEN = "Shorten the name of the file or its folders, or leave the file out with leave-out in the recipe."


def windows_path_problems(wheels: Iterable[PlannedWheel]) -> Iterator[InputError]:
    """Yield an error for each path that Windows rejects, confuses with another path, or always considers too long."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for wheel in wheels:
        groups[wheel.folder] |= dict.fromkeys(_installed_paths(wheel))
    shared = groups.pop("", {})
    for path in dict.fromkeys(path for paths in (shared, *groups.values()) for path in paths):
        if fault := windows_path_fault(path):
            yield InputError(path, fault, expected="a name that Windows accepts", remedy=_RENAME)
        if room_above(path) < SHORTEST_SITE:
            found = f"is {count(path_length(path), 'character')} long"
            longest = room_above("") - SHORTEST_SITE
            expected = f"at most {longest}, because Windows allows {LONGEST_PATH}, including the path of site-packages"
            yield InputError(path, found, expected=expected, remedy=_SHORTEN)
    for paths in list(groups.values()) or [{}]:
        for clash in find_case_clashes([*shared, *paths]):
            found = f"differs from {', '.join(clash[1:])} only in case, so Windows treats them as one file"
            yield InputError(clash[0], found, remedy=_RENAME)


_SHIP_IT = (
    "Add the library to the artifacts of a runtime package (from Debian: 'artifacts import --bundle-sysdeps'). "
    "If every target system has the library, add it to system-libraries under [audit] in the recipe instead."
)


_READERS = {Platform.LINUX: "librocm_kpack.so", Platform.WINDOWS: "rocm_kpack"}
"""The name prefix of the library that reads kpack archives, keyed by platform."""
_ARCHIVE = ".kpack"


def review_plan(
    catalog: Catalog, recipe: Recipe, facts: Facts, groups: Sequence[Sequence[PlannedWheel]]
) -> tuple[PlanWarning, ...]:
    """Return the warnings about the planned wheels.

    Each of the ``groups`` contains the wheels that are installed together.
    """
    is_windows = facts.platform is Platform.WINDOWS
    return (
        *_unknown_artifacts(catalog, recipe),
        *_unknown_targets(catalog),
        *_broken_links(catalog),
        *_lacking_reader(catalog, facts),
        *_missing_libraries(recipe, facts, groups),
        *_platform_tags(facts, groups),
        *foreign_binaries(facts),
        *(import_libraries(entry.path for entry in catalog.entries if is_windows)),
        *(long_paths(groups, recipe.audit.site_packages_length) if is_windows else ()),
        *(missing_dlls(facts, groups, recipe.audit.system_libraries) if is_windows else ()),
        *(lacking_relays(recipe, groups) if is_windows else ()),
    )


def _unknown_artifacts(catalog: Catalog, recipe: Recipe) -> Iterator[PlanWarning]:
    """Yield a warning for each artifact that the recipe prefers or takes but that doesn't exist.

    A recipe may list artifacts that only other builds have. So an artifact that the recipe takes is reported only if
    the built-in recipe doesn't list it. A further condition is that an artifact with a similar name, or one that the
    recipe doesn't list, exists.
    """
    known = {text for name in catalog.artifacts for text in (name.name, str(name))}
    for row in recipe.prefer:
        if row.artifact not in known:
            found = f"prefers the artifact {row.artifact}, which doesn't exist"
            yield PlanWarning("unknown-artifact", f"[[prefer]] {row.pattern}", found, "Correct or remove the row.")
    present = sorted({name.name for name in catalog.artifacts})
    listed = list(_listed_artifacts(recipe))
    unlisted = [name for name in present if all(name != other for *_, other in listed)]
    unknown = dict.fromkeys(row for row in listed if row[-1] not in {*known, "*"})
    usual = {name for *_, name in _listed_artifacts(load_recipe())} if unknown else set()
    for key, field, name in (row for row in unknown if row[-1] not in usual):
        similar = get_close_matches(name, [one for one in present if (key, field, one) not in listed])
        if similar or unlisted:
            found = f"lists the artifact {name}, which doesn't exist"
            found += f"; the recipe doesn't list the existing {first_of(unlisted)}" if unlisted else ""
            remedy = f"Did you mean {' or '.join(similar)}?" if similar else "Correct or remove the name."
            yield PlanWarning("unknown-artifact", f"packages.{key}.take.{field}", found, remedy)


def _listed_artifacts(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """Yield a package, a field, and a name for each artifact that a package takes or excludes."""
    for key, package in recipe.packages.items():
        for take in package.take:
            yield from ((key, "artifacts", name) for name in take.artifacts)
            yield from ((key, "exclude-artifacts", name) for name in take.exclude_artifacts)


def _unknown_targets(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each GPU in the names of artifacts that is neither a known target nor a known family."""
    groups: dict[str, list[str]] = {}
    for name in catalog.artifacts:
        groups.setdefault(name.target, []).append(str(name))
    for target, names in groups.items():
        try:
            check_family(target, source="artifacts")
        except UnknownTargetError as e:  # noqa: PERF203 (all of them are reported)
            found = f"is for {target}, which isn't a known GPU target or family"
            remedy = f"Rename the artifact if the name is misspelled. {e.remedy}"
            yield PlanWarning("unknown-target", first_of(names), found, remedy)


def _broken_links(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each artifact with symlinks whose target is not in any artifact."""
    index = PrefixIndex(catalog.entries)
    found: dict[str, dict[str, str]] = {}
    for entry in (one for one in catalog.entries if one.link is not None):
        target = resolve_link(index, entry.path)
        if not target.outcome.is_found:
            found.setdefault(str(entry.artifact), {})[entry.path] = describe_end(target)
    for artifact, ends in sorted(found.items()):
        path, end = next(iter(ends.items()))
        more = f" (and {count(len(ends) - 1, 'more such symlink')})" if len(ends) > 1 else ""
        remedy = "Add the artifact that contains the file, fix the symlink, or use leave-out in the recipe."
        yield PlanWarning(
            "broken-link",
            artifact,
            f"{path} is left out, because it is a symlink {end}{more}",
            remedy,
            tuple(ends),
        )


def _lacking_reader(catalog: Catalog, facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning if there are kpack archives, created by any splitter, but no library that reads them."""
    files = (entry.path for entry in catalog.entries if entry.kind is FileKind.FILE)
    archives = tuple(dict.fromkeys(path for path in files if path.endswith(_ARCHIVE)))
    reader = _READERS[facts.platform]
    if archives and not any(posixpath.basename(entry.path).startswith(reader) for entry in catalog.entries):
        found = f"can't be read, because {reader}, which the HIP runtime uses for device code archives, is missing"
        remedy = "Use these packages only with a HIP runtime that supports kpack archives."
        yield PlanWarning("no-kpack-runtime", first_of(archives, 1), found, remedy, archives)


def _missing_libraries(recipe: Recipe, facts: Facts, groups: Sequence[Sequence[PlannedWheel]]) -> Iterator[PlanWarning]:
    """Yield a warning for each library that a file needs and that no package or system provides."""
    system = allowed_libraries(recipe.audit.system_libraries)
    found: dict[tuple[str, str], dict[str, None]] = {}
    for wheels in groups:
        for file, name, holder in _unmet(wheels, facts):
            if system.find(name, facts.elves[file.source].machine) is None:
                found.setdefault((name, holder), {})[file.path] = None
    for (name, holder), files in sorted(found.items()):
        where = f"only {holder} provides it" if holder else "no package or allowed system library provides it"
        text = f"needed by {first_of(list(files), 1)}, but {where}"
        yield PlanWarning("missing-library", name, text, _SHIP_IT, tuple(files))


def _unmet(wheels: Sequence[PlannedWheel], facts: Facts) -> Iterator[tuple[FileMember, str, str]]:
    """Yield each file, each library that it needs but no package ships, and the package whose tar has the library."""
    shipped = {posixpath.basename(member.path) for wheel in wheels for member in wheel.members}
    tars = [(wheel, member) for wheel in wheels for member in wheel.members if isinstance(member, TarMember)]
    packed = {posixpath.basename(entry.path): wheel.name.distribution for wheel, tar in tars for entry in tar.entries}
    for file in (member for wheel in wheels for member in wheel.members if isinstance(member, FileMember)):
        for name in _needed(file, facts):
            if name not in shipped:
                yield file, name, packed.get(name, "")
    for file in (entry.file for _, tar in tars for entry in tar.entries if entry.file):
        for name in _needed(file, facts):
            if name not in shipped and name not in packed:
                yield file, name, ""


def _needed(file: FileMember, facts: Facts) -> Sequence[str]:
    elf = facts.elves.get(file.source)
    return elf.needed if elf is not None else ()


def _platform_tags(facts: Facts, groups: Iterable[Sequence[PlannedWheel]]) -> Iterator[PlanWarning]:
    """Yield a warning for each wheel whose platform tag includes systems where its files don't run."""
    checked = set()
    for wheel in (wheel for wheels in groups for wheel in wheels):
        name = wheel.name.file_name
        floor = members_floor(wheel.members, facts)
        if floor is None or name in checked:
            continue
        checked.add(name)
        platforms = wheel_platforms(name)
        promised = lowest_glibc(platforms)
        remedy = f"Build without a platform tag, or with {floor.tag}."
        local = [tag.text for tag in platforms if tag.is_local]
        if local:
            found = f"has the tag {', '.join(local)}, which public indexes reject"
            yield PlanWarning("platform-tag", name, found, remedy)
        if promised and promised < floor.glibc:
            asked, given = (".".join(map(str, glibc)) for glibc in (floor.glibc, promised))
            found = f"promises glibc {given}, but needs glibc {asked} ({floor.reason})"
            yield PlanWarning("platform-tag", name, found, remedy)


def foreign_binaries(facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning for DLLs and programs that nothing loads, because they are for a different system or machine."""
    if facts.foreign:
        found = f"can't be loaded by {facts.platform.label} on the target machines of these packages; shipped as data"
        remedy = "Ignore this warning if something else reads the file, as pip does with its launchers."
        yield PlanWarning("foreign-binary", first_of(facts.foreign, 1), found, remedy, facts.foreign)


def import_libraries(paths: Iterable[str]) -> Iterator[PlanWarning]:
    """Yield a warning for each import library that only GNU linkers find under its name."""
    for library in gnu_import_libraries(paths):
        name = posixpath.basename(library.expected)
        found = "has a name that only GNU linkers look for"
        remedy = f"Make the build create {name}, which MSVC, clang-cl, and CMake look for."
        if library.beside:
            found += f", and is next to {library.beside}"
            remedy = "Ignore this warning if both import libraries are for the same DLL."
        yield PlanWarning("import-library", library.path, found, remedy, (library.path,))


def long_paths(groups: Sequence[Sequence[PlannedWheel]], wanted: int) -> Iterator[PlanWarning]:
    """Yield a warning for each wheel whose longest path leaves fewer than ``wanted`` characters for site-packages."""
    for wheel in {wheel.name.file_name: wheel for wheels in groups for wheel in wheels}.values():
        files = sorted(_installed_paths(wheel), key=lambda path: (-path_length(path), path))
        long = tuple(path for path in files if room_above(path) < wanted)
        if long:
            room = room_above(long[0])
            verb = "leaves" if len(long) == 1 else "leave"
            found = f"has {count(len(long), 'path')} that {verb} fewer than {wanted} characters for site-packages; "
            found += f"the longest path leaves {room}: {long[0]}"
            yield PlanWarning("long-path", wheel.name.file_name, found, _SHORTEN, long)


_SHIP_DLL = "Add the DLL to the artifacts of a runtime package, or to system-libraries under [audit] in the recipe."
_NO_DEBUG = "Build the file for release (/MD instead of /MDd)."


def missing_dlls(
    facts: Facts, groups: Sequence[Sequence[PlannedWheel]], system: Iterable[str]
) -> Iterator[PlanWarning]:
    """Yield a warning for each DLL that a file imports, even lazily, and that no package, Windows, or driver provides.

    This includes the debug runtime libraries of Visual C++, which users don't have. ``system`` contains patterns for
    other DLLs that every target system has.
    """
    patterns = [fold_case(pattern) for pattern in system]
    found: dict[str, dict[str, None]] = {}
    for wheels in groups:
        members = [member for wheel in wheels for member in wheel.members]
        shipped = {fold_case(posixpath.basename(path)) for member in members for path in member_paths(member)}
        for file in (file for member in members for file in member_files(member)):
            pe = facts.images.get(file.source)
            for name in pe.wanted if pe else ():
                key = fold_case(name)
                is_known = key in shipped or kind_of_dll(name) not in {None, DllKind.DEBUG}
                if not is_known and not any(fnmatchcase(key, pattern) for pattern in patterns):
                    found.setdefault(name, {})[file.path] = None
    for name, files in sorted(found.items()):
        why, remedy = "but neither a package nor Windows has it", _SHIP_DLL
        if kind_of_dll(name) is DllKind.DEBUG:
            why, remedy = "but only machines with Visual Studio have it", _NO_DEBUG
        text = f"needed by {first_of(list(files), 1)}, {why}"
        yield PlanWarning("missing-library", name, text, remedy, tuple(files))
