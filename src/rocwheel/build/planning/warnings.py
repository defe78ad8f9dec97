"""Warnings about planned distributions that are probably wrong, before they are built."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import PrefixIndex, describe_end, resolve_link
from rocwheel.binary.platform import Platform
from rocwheel.build.plan import FileMember, PlannedWheel, PlanWarning, TarMember
from rocwheel.build.planning.checks import long_paths
from rocwheel.build.planning.wheels import lacking_relays, members_floor
from rocwheel.core.messages import count, first_of
from rocwheel.core.names import fold_case
from rocwheel.linking.import_libraries import gnu_import_libraries
from rocwheel.linking.known.system_libraries import allowed_libraries
from rocwheel.linking.known.windows_libraries import DllKind, kind_of_dll
from rocwheel.wheels.names import wheel_platforms
from rocwheel.wheels.tags import lowest_glibc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.build.layout.facts import Facts
    from rocwheel.build.plan import PlannedWheel
    from rocwheel.build.recipe import Recipe


def foreign_binaries(facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning for DLLs and programs that nothing loads: in a tree for Linux, or of other machines."""
    if facts.foreign:
        found = f"ship as data: {facts.platform.label} on these packages' machine loads none of them"
        remedy = "Nothing needs to be done if something else reads them, as pip does with its launchers."
        yield PlanWarning("foreign-binary", first_of(facts.foreign, 1), found, remedy, facts.foreign)


def import_libraries(paths: Iterable[str]) -> Iterator[PlanWarning]:
    """Yield a warning for each import library under the name that only GNU linkers look for."""
    for library in gnu_import_libraries(paths):
        name = posixpath.basename(library.expected)
        where = f"stands beside {library.beside}" if library.beside else f"stands in the place of {name}"
        remedy = f"Have the build make {name}, which MSVC, clang-cl and CMake look for."
        if library.beside:
            remedy = "Nothing needs to be done if both are of the same DLL."
        found = f"{where}, and has the name that GNU linkers alone look for"
        yield PlanWarning("import-library", library.path, found, remedy, (library.path,))


_SHIP_DLL = "Add it to the artifacts of a runtime package, or to system-libraries under [audit] in the recipe."
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
        yield _dll_warning(name, tuple(files))


def _dll_warning(name: str, files: tuple[str, ...]) -> PlanWarning:
    why, remedy = "but no package has it, and Windows doesn't either", _SHIP_DLL
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


_SHIP_IT = (
    "Add what is missing to the artifacts of a runtime package (from Debian: from-deb --bundle-sysdeps), or, if every "
    "target system has it, to system-libraries under [audit] in the recipe."
)


_READERS = {Platform.LINUX: "librocm_kpack.so", Platform.WINDOWS: "rocm_kpack"}
"""How the name of the library begins that reads archives."""
_ARCHIVE = ".kpack"


def review_plan(
    catalog: Catalog, recipe: Recipe, facts: Facts, groups: Sequence[Sequence[PlannedWheel]]
) -> tuple[PlanWarning, ...]:
    """Return the warnings about wheels, given in the groups that are installed together."""
    return (
        *_unknown_artifacts(catalog, recipe),
        *_broken_links(catalog),
        *_lacking_reader(catalog, facts),
        *_missing_libraries(recipe, facts, groups),
        *_platform_tags(facts, groups),
        *foreign_binaries(facts),
        *(_windows_warnings(catalog, recipe, facts, groups) if facts.platform is Platform.WINDOWS else ()),
    )


def _windows_warnings(
    catalog: Catalog, recipe: Recipe, facts: Facts, groups: Sequence[Sequence[PlannedWheel]]
) -> Iterator[PlanWarning]:
    yield from import_libraries(entry.path for entry in catalog.entries)
    yield from long_paths(groups, recipe.audit.site_packages_length)
    yield from missing_dlls(facts, groups, recipe.audit.system_libraries)
    yield from lacking_relays(recipe, groups)


def _unknown_artifacts(catalog: Catalog, recipe: Recipe) -> Iterator[PlanWarning]:
    """Yield a warning for each artifact that the recipe prefers and that is not there."""
    known = {text for name in catalog.artifacts for text in (name.name, str(name))}
    for row in recipe.prefer:
        if row.artifact not in known:
            found = f"prefers the artifact {row.artifact}, which is not there"
            yield PlanWarning("unknown-artifact", f"[[prefer]] {row.pattern}", found, "Correct or remove the row.")


def _broken_links(catalog: Catalog) -> Iterator[PlanWarning]:
    """Yield a warning for each artifact with symlinks that lead to nothing in any artifact."""
    index = PrefixIndex(catalog.entries)
    found: dict[str, dict[str, str]] = {}
    for entry in (one for one in catalog.entries if one.link is not None):
        target = resolve_link(index, entry.path)
        if not target.outcome.is_found:
            found.setdefault(str(entry.artifact), {})[entry.path] = describe_end(target)
    for artifact, ends in sorted(found.items()):
        path, end = next(iter(ends.items()))
        more = f", and {count(len(ends) - 1, 'more such symlink')}" if len(ends) > 1 else ""
        remedy = "Give the artifact that has the file, mend the link, or leave it out by the recipe (leave-out)."
        yield PlanWarning("broken-link", artifact, f"{path} is a symlink {end}{more}: left out", remedy, tuple(ends))


def _lacking_reader(catalog: Catalog, facts: Facts) -> Iterator[PlanWarning]:
    """Yield a warning when there are kpack archives, whoever split them off, but nothing that reads them."""
    files = (entry.path for entry in catalog.entries if entry.kind is FileKind.FILE)
    archives = tuple(dict.fromkeys(path for path in files if path.endswith(_ARCHIVE)))
    reader = _READERS[facts.platform]
    if archives and not any(posixpath.basename(entry.path).startswith(reader) for entry in catalog.entries):
        found = f"device code is in archives, but there is no {reader}, by which HIP's runtime reads them"
        remedy = "Use these packages only with a HIP runtime with kpack."
        yield PlanWarning("no-kpack-runtime", first_of(archives, 1), found, remedy, archives)


def _missing_libraries(recipe: Recipe, facts: Facts, groups: Sequence[Sequence[PlannedWheel]]) -> Iterator[PlanWarning]:
    """Yield a warning for each library that a file needs and that nothing brings to the user's machine."""
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
    """Yield each file, a library that it needs and no package ships, and the package whose tar has it, if any."""
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
    """Yield a warning for each wheel whose tag promises more systems than its files run on."""
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
            found = f"has the tag {', '.join(local)}, which public indexes refuse"
            yield PlanWarning("platform-tag", name, found, remedy)
        if promised and promised < floor.glibc:
            asked, given = (".".join(map(str, glibc)) for glibc in (floor.glibc, promised))
            found = f"promises glibc {given}, but {floor.reason} needs {asked}"
            yield PlanWarning("platform-tag", name, found, remedy)
