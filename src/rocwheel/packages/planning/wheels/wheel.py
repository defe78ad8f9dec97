"""What planned wheels have in common: tag, metadata, licenses, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.platform import Platform
from rocwheel.distributions.formats.metadata.license_expression import join_expressions
from rocwheel.distributions.formats.metadata.metadata import CoreMetadata
from rocwheel.distributions.formats.platforms.given_platform import check_platform_of_files, check_platform_of_windows
from rocwheel.distributions.formats.platforms.platform_floor import PlatformFloor, platform_floor
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.packages.plan import FileMember, PlannedComponent, PlannedWheel, TarMember, TextMember
from rocwheel.packages.planning.sdk_source import sdk_component, sdk_license
from rocwheel.packages.recipe.names import for_variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.layout.selection import PrefixEntries
    from rocwheel.packages.licensing.licensed import LicensedFiles
    from rocwheel.packages.plan import Member
    from rocwheel.packages.planning.basis import PlanBasis
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["make_wheel", "members_floor"]

_OWN_TEXT = "rocm_sdk/LICENSE"
"""The license text of the Python modules, in ``.dist-info/licenses``."""


def make_wheel(
    group: PackageGroup,
    package: PlacedPackage,
    members: Sequence[Member],
    licensed: LicensedFiles,
    requires: Iterable[str],
) -> PlannedWheel:
    """Return a planned wheel with everything that follows from its members and the recipe: tag, metadata, licenses.

    Raises `InputError` for a platform tag of the options that the files don't fit.
    """
    basis, spec = group.basis, group.recipe_of(package)
    floor = members_floor(members, basis.facts)
    components = _components(licensed, group, package)
    texts: list[FileMember | TextMember] = [*_license_members(licensed.texts), *_own_license(group, package)]
    metadata = CoreMetadata(
        package.distribution,
        basis.version,
        for_variant(spec.summary, package.variant),
        requires_python=basis.recipe.requires_python,
        license_expression=join_expressions(component.license for component in components),
        license_files=tuple(member.path for member in texts),
        requires=tuple(f"{name}=={basis.version}" for name in requires),
    )
    return PlannedWheel(
        package.key,
        WheelName(package.distribution, basis.version, f"py3-none-{_platform_tag(basis, floor)}"),
        metadata,
        tuple(members),
        tuple(texts),
        components=components,
        targets=_targets(members, basis.facts),
        floor_reason=floor.reason if floor else "",
    )


def _platform_tag(basis: PlanBasis, floor: PlatformFloor | None) -> str:
    """Return the tag that the options give, if the files run there, else the one that the files ask for."""
    given, source = basis.options.platform_tag, basis.options.platform_tag_source
    if given is None:
        return floor.tag if floor else basis.any_tag
    if basis.facts.platform is Platform.WINDOWS:
        check_platform_of_windows(given, source)
    else:
        check_platform_of_files(given, floor, source)
    return given


def members_floor(members: Iterable[Member], facts: Facts) -> PlatformFloor | None:
    """Return the oldest glibc that the files among the members run on, none when there is no machine code."""
    return platform_floor(
        (file.origin, elf)
        for member in members
        for file in _files(member)
        if (elf := facts.elves.get(file.source)) is not None
    )


def _targets(members: Iterable[Member], facts: Facts) -> tuple[str, ...]:
    files = (member for member in members if isinstance(member, FileMember))
    return tuple(dict.fromkeys(target for file in files for target in facts.targets.get(file.source, ())))


def _files(member: Member) -> Iterator[FileMember]:
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file is not None)


def _components(licensed: LicensedFiles, group: PackageGroup, package: PlacedPackage) -> tuple[PlannedComponent, ...]:
    """Return the components of a package, its Python modules among them."""
    if not group.recipe_of(package).module:
        return licensed.components
    return (*licensed.components, sdk_component(_OWN_TEXT))


def _own_license(group: PackageGroup, package: PlacedPackage) -> Iterator[TextMember]:
    if group.recipe_of(package).module:
        yield TextMember(_OWN_TEXT, sdk_license())


def _license_members(texts: PrefixEntries) -> Iterator[FileMember]:
    for path, entry in texts.items():
        if entry.source is not None:
            yield FileMember(path, 0o644, entry.source, str(entry.artifact), path)
