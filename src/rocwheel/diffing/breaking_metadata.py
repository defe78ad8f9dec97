"""Changes of metadata that break users: dropped Pythons, systems, commands and extras."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.platforms.tags import lowest_glibc, parse_platforms
from rocwheel.distributions.formats.requirements.requirements import readable_requirements
from rocwheel.foundation.messages.counting import first_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.diffing.changes import FieldChange, PackageChange

__all__ = [
    "find_glibc_raised",
    "find_lost_entry_points",
    "find_lost_extras",
    "find_lost_platforms",
    "find_new_requirements",
    "find_python_narrowed",
]

_PYTHONS = tuple(f"3.{minor}.{patch}" for minor in range(40) for patch in (0, 1, 30))
_NAMES = 5


def find_lost_entry_points(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the commands and other entry points that went."""
    for change in _changes(package, "Entry point"):
        if change.went:
            yield "", f"has no more the entry point {first_of(change.went, _NAMES)}"


def find_lost_extras(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the extras that went; their names are compared as installers do (:pep:`685`)."""
    for change in _changes(package, "Provides-Extra"):
        came = {canonicalize_name(name) for name in change.came}
        if lost := [name for name in change.went if canonicalize_name(name) not in came]:
            yield "", f"has no more the extra {first_of(lost, _NAMES)}"


def find_python_narrowed(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the releases of Python that Requires-Python, or the wheel's tags, admit no more."""
    for change in _changes(package, "Requires-Python"):
        before, after = "".join(change.went), "".join(change.came)
        if lost := [python for python in _PYTHONS if _admits(before, python) and not _admits(after, python)]:
            yield "", f"requires Python {after}, and required {before or 'none'}: {lost[0]} is left out"
    for field, now in (("Python tag", package.new_pythons), ("ABI tag", package.new_abis)):
        for change in _changes(package, field):
            lost = [tag for tag in change.went if not tag.startswith(("py2", "cp2"))]
            if lost and not {"py3", "none", "abi3"} & {*change.came, *now}:
                yield "", f"has no more the {field} {first_of(lost, _NAMES)}"


def find_glibc_raised(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the newer glibc that a wheel needs on a machine."""
    for machine, before, after in _machines(package):
        if before is not None and after is not None and after > before:
            old, new = (".".join(map(str, glibc)) for glibc in (before, after))
            yield "", f"needs glibc {new} on {machine}, and needed {old}"


def find_lost_platforms(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the platform tags that went without another for the same system and machine."""
    for change in _changes(package, "Platform tag"):
        came = [tag for text in change.came for tag in parse_platforms(text)]
        places = {(tag.system, tag.machine) for tag in came}
        if any(tag.system == "any" for tag in came):
            continue
        lost = [
            text for text in change.went for tag in parse_platforms(text) if (tag.system, tag.machine) not in places
        ]
        kept = [text for text in lost if not _is_covered(text, package)]
        if kept:
            yield "", f"has no more the platform tag {first_of(kept, _NAMES)}"


def find_new_requirements(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the packages that were not required before, neither always nor in the same case."""
    for change in _changes(package, "Requires-Dist"):
        before = {_name_and_marker(text) for text in (*package.old_requires, *change.went)}
        if added := [text for text in change.came if not _is_extra(text) and not _was_required(text, before)]:
            yield "", f"requires {first_of(added, _NAMES)}"


def _changes(package: PackageChange, field: str) -> list[FieldChange]:
    return [change for change in package.fields if change.field == field]


def _admits(specifier: str, python: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(python, prereleases=True)
    except InvalidSpecifier:
        return True  # installers pass over what they can't read


def _is_extra(requirement: str) -> bool:
    return "extra" in requirement.partition(";")[2]


def _was_required(requirement: str, before: set[tuple[str, str]]) -> bool:
    name, marker = _name_and_marker(requirement)
    return not before.isdisjoint({(name, ""), (name, marker)})


def _name_and_marker(requirement: str) -> tuple[str, str]:
    """Return the name that is required, and in which case, which is empty for always."""
    read = readable_requirements([requirement.replace("==VERSION", "")])
    return (canonicalize_name(read[0].name), str(read[0].marker or "")) if read else (requirement, "")


def _machines(package: PackageChange) -> Iterator[tuple[str, tuple[int, int] | None, tuple[int, int] | None]]:
    """Yield each machine with the oldest glibc that the wheel needed, and needs now."""
    before, after = package.old_platforms, package.new_platforms
    for machine in dict.fromkeys(
        tag.machine for text in before for tag in parse_platforms(text) if tag.system == "glibc"
    ):
        yield (
            machine,
            lowest_glibc(tag for text in before for tag in parse_platforms(text) if tag.machine == machine),
            lowest_glibc(tag for text in after for tag in parse_platforms(text) if tag.machine == machine),
        )


def _is_covered(text: str, package: PackageChange) -> bool:
    """Return whether a tag's system and machine are among those of the tags that stayed."""
    gone = {(tag.system, tag.machine) for tag in parse_platforms(text)}
    return any((tag.system, tag.machine) in gone for other in package.new_platforms for tag in parse_platforms(other))
