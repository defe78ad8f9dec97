"""Warnings about planned distributions that are probably wrong, before they are built."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import PrefixIndex, describe_end, resolve_link
from rocwheel.binary.platform import Platform
from rocwheel.core.messages import count, first_of
from rocwheel.distributions.formats.platforms.tags import lowest_glibc
from rocwheel.distributions.formats.wheel_file_name import wheel_platforms
from rocwheel.linking.known.system_libraries import allowed_libraries
from rocwheel.packages.plan import FileMember, PlannedWheel, PlanWarning, TarMember
from rocwheel.packages.planning.wheels.wheel import members_floor
from rocwheel.packages.planning.windows.foreign import foreign_binaries, import_libraries
from rocwheel.packages.planning.windows.missing_dlls import missing_dlls
from rocwheel.packages.planning.windows.paths import long_paths
from rocwheel.packages.planning.windows.relays import lacking_relays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.recipe.recipe import Recipe

__all__ = ["review_plan"]

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
