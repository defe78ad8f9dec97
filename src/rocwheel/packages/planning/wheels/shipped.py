"""What a package ships: its files with what stands in for some, and its Python modules."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.platform import Platform
from rocwheel.binary.stubs.forwarding_library import forwarding_name
from rocwheel.packages.plan import ForwardingMember
from rocwheel.packages.planning.sdk_source import dist_info_module, sdk_module
from rocwheel.packages.planning.windows.relays import put_relays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.packages.plan import Member
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["forwarding_members", "module_files", "shipped_members"]


def module_files(group: PackageGroup, package: PlacedPackage) -> dict[str, str]:
    """Return the Python files of a package, by path in its module."""
    basis = group.basis
    facts = dist_info_module(basis.version, basis.options.module_suffix, basis.recipe.selector.module)
    return sdk_module(group.recipe_of(package).module) | facts


def shipped_members(group: PackageGroup, package: PlacedPackage) -> list[Member]:
    """Return what a package takes of the artifacts: files, with relays and forwarding libraries where it has any."""
    files: list[Member] = [*group.member_maker(package).members(package)]
    if group.basis.facts.platform is Platform.WINDOWS:
        files = put_relays(files, package.platform_module, group.recipe_of(package).relays)
    return [*files, *forwarding_members(group, package)]


def forwarding_members(group: PackageGroup, package: PlacedPackage) -> Iterator[ForwardingMember]:
    """Yield a forwarding library for each library that is also opened under its name without a version."""
    named = group.recipe_of(package).unversioned
    patterns = PathPatterns(named) if named else None
    tag = RunpathTag(group.basis.recipe.run_path_tag)
    for path, file in package.placement.files.items():
        elf = group.basis.facts.elf(file.entry)
        if patterns is None or elf is None or not elf.soname or not patterns.matches(path):
            continue
        plain = posixpath.join(posixpath.dirname(path), forwarding_name(elf.soname))
        if not package.placement.has(plain):
            place = posixpath.join(package.platform_module, plain)
            yield ForwardingMember(place, elf.soname, elf.machine, str(file.entry.artifact), tag)
