"""Plans wheels from placed packages, including members, tags, metadata, licenses, and console scripts."""

from __future__ import annotations

import json
import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.artifacts.sdk_files import with_declared_targets
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.platform import Platform
from rocwheel.binary.stubs import forwarding_name
from rocwheel.build.plan import (
    FileMember,
    ForwardingMember,
    PlannedWheel,
    PlanWarning,
    RelayMember,
    TextMember,
    member_files,
)
from rocwheel.build.recipe import for_variant
from rocwheel.build.sdk_source import (
    dist_info_module,
    render_literals,
    script_function,
    sdk_component,
    sdk_license,
    sdk_module,
)
from rocwheel.core.reading import have_same_bytes
from rocwheel.wheels.metadata import CoreMetadata, join_expressions
from rocwheel.wheels.platform_floor import PlatformFloor, platform_floor
from rocwheel.wheels.tags import check_platform_of_files, check_platform_of_windows
from rocwheel.wheels.writing import WheelName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.build.file_facts import Facts
    from rocwheel.build.plan import Member
    from rocwheel.build.planning.licensed_components import LicensedFiles
    from rocwheel.build.planning.packages import PackageGroup, PlacedPackage, PlanBasis
    from rocwheel.build.recipe import ConsoleScript, Recipe, RelayRule


def plan_runtime_wheel(
    group: PackageGroup,
    package: PlacedPackage,
    licensed: LicensedFiles,
    targets: Sequence[str],
    modules: dict[str, str],
) -> PlannedWheel:
    """Plan the wheel of a runtime package.

    ``targets`` are the targets that the SDK as a whole has code for. ``modules`` contains the source of additional
    Python modules, keyed by file name.
    """
    spec, shipped = group.recipe_of(package), package.placement.paths
    scripts = {name: script for name, script in spec.console_scripts.items() if script.path in shipped}
    texts = {f"{package.module}/{path}": text for path, text in (module_files(group, package) | modules).items()}
    texts[f"{package.platform_module}/__init__.py"] = ""
    if spec.console_scripts:
        devel = next((other for other in group.by_key.values() if group.recipe_of(other).kind == "devel"), None)
        devel = devel if any(script.expands for script in scripts.values()) else None
        texts[f"{package.module}/_build_info.py"] = render_literals(
            {
                "PLATFORM_MODULE": package.platform_module,
                "DEVEL_MODULE": devel.platform_module if devel else "",
                "DEVEL_PACKAGE": devel.module if devel else "",
                "SDK_MODULE": group.basis.recipe.selector.module,
                "SCRIPTS": {name: _script_row(group, package, script) for name, script in scripts.items()},
            }
        )
    if spec.dist_info:
        facts = with_declared_targets(spec.dist_info, b"{}", targets)
        texts[f"{package.platform_module}/{spec.dist_info}"] = facts.decode()
    members = [member for member in shipped_members(group, package) if member.path not in texts]
    members += [TextMember(path, text) for path, text in texts.items()]
    entry_points = {name: f"{package.module}._cli:{script_function(name)}" for name in scripts}
    wheel = make_wheel(group, package, members, licensed, group.required(package))
    return msgspec.structs.replace(wheel, console_scripts=entry_points)


def _script_row(group: PackageGroup, package: PlacedPackage, script: ConsoleScript) -> dict[str, Any]:
    row: dict[str, Any] = {"path": script.path, "expands": script.expands}
    if script.check is not None:
        row["check"] = list(script.check)
    if script.gpu:
        row["gpu"] = True
    if script.prepend:
        row["prepend"] = {name: list(group.folders(places, package)) for name, places in script.prepend.items()}
    return row


def plan_device_wheel(group: PackageGroup, package: PlacedPackage, licensed: LicensedFiles) -> PlannedWheel:
    """Plan the wheel with a GPU target's files, which are installed into another package's platform module."""
    root = package.platform_module
    members = shipped_members(group, package)
    # pip removes empty folders only below folders that contain one of the distribution's own files.
    members.append(TextMember(f"{root}/.device-{package.variant}", ""))
    paths = sorted(member.path.removeprefix(f"{root}/") for member in members)
    links = [{"relpath": path, "target": posixpath.join("../" * path.count("/"), "..", root, path)} for path in paths]
    manifest = json.dumps({"version": group.basis.version, "links": links}, indent=1) + "\n"
    members.append(TextMember(f"{root}/.devel_links/{package.variant}.json", manifest))
    return make_wheel(group, package, members, licensed, group.required(package))


def module_files(group: PackageGroup, package: PlacedPackage) -> dict[str, str]:
    """Return the Python files of a package, keyed by their path in the module."""
    basis = group.basis
    facts = dist_info_module(basis.version, basis.options.module_suffix, basis.recipe.selector.module)
    return sdk_module(group.recipe_of(package).module) | facts


def shipped_members(group: PackageGroup, package: PlacedPackage) -> list[Member]:
    """Return the members that a package takes from artifacts: files, and possibly relays and forwarding libraries."""
    files: list[Member] = [*group.member_maker(package).members(package)]
    if group.basis.facts.platform is Platform.WINDOWS:
        files = put_relays(files, package.platform_module, group.recipe_of(package).relays)
    return [*files, *forwarding_members(group, package)]


def forwarding_members(group: PackageGroup, package: PlacedPackage) -> Iterator[ForwardingMember]:
    """Yield a forwarding library for each library that is also opened by its unversioned name."""
    named = group.recipe_of(package).unversioned
    patterns = PathPatterns(named) if named else None
    tag = RunpathTag(group.basis.recipe.run_path_tag)
    taken = package.placement.paths
    for path, entry in package.placement.files.items():
        elf = group.basis.facts.elf(entry)
        if patterns is None or elf is None or not elf.soname or not patterns.matches(path):
            continue
        plain = posixpath.join(posixpath.dirname(path), forwarding_name(elf.soname))
        if plain not in taken:
            place = posixpath.join(package.platform_module, plain)
            yield ForwardingMember(place, elf.soname, elf.machine, str(entry.artifact), tag)


def put_relays(members: Sequence[Member], root: str, rules: Mapping[str, RelayRule]) -> list[Member]:
    """Return a package's members with relays instead of copies. ``root`` is the package's platform module.

    A file that is not a copy of the program in its rule stays unchanged. Raises `InputError` if a file can't be read.
    """
    files = {member.path: member for member in members if isinstance(member, FileMember)}
    relays: dict[str, Member] = {}
    for path, rule in rules.items():
        copy, program = files.get(f"{root}/{path}"), files.get(f"{root}/{rule.target}")
        if copy is not None and program is not None and _is_copy(copy, program):
            target, size = rule.target_from(path), copy.source.size
            relays[copy.path] = RelayMember(copy.path, target, copy.artifact, size, rule.arguments)
    return [relays.get(member.path, member) for member in members]


def _is_copy(one: FileMember, other: FileMember) -> bool:
    with one.source.view() as mine, other.source.view() as theirs:
        return have_same_bytes(mine, theirs)


def lacking_relays(recipe: Recipe, groups: Sequence[Sequence[PlannedWheel]]) -> Iterator[PlanWarning]:
    """Yield a warning for each rule that creates no relay, because a program is missing or the programs differ."""
    held: dict[str, dict[str, Member]] = defaultdict(dict)
    for wheel in (wheel for wheels in groups for wheel in wheels):
        held[wheel.package] |= {member.path.partition("/")[2]: member for member in wheel.members}
    for key, members in held.items():
        for path, rule in sorted(recipe.packages[key].relays.items()):
            if not isinstance(members.get(path), RelayMember):
                if path not in members:
                    found = f"is not in any wheel of {key}, so no relay replaces it"
                elif rule.target not in members:
                    found = f"ships unchanged, because {rule.target} is not in any wheel of {key}"
                else:
                    found = f"ships unchanged, because it is not a copy of {rule.target}"
                files = (path,) if path in members else ()
                yield PlanWarning("relay", path, found, "Correct or remove the relay in the recipe.", files)


_OWN_TEXT = "rocm_sdk/LICENSE"
"""The path of the license text for the Python modules, in ``.dist-info/licenses``."""


def make_wheel(
    group: PackageGroup,
    package: PlacedPackage,
    members: Sequence[Member],
    licensed: LicensedFiles,
    requires: Iterable[str],
) -> PlannedWheel:
    """Return a planned wheel. Its tag, metadata, and licenses come from its members and the recipe.

    Raises `InputError` if the platform tag in the options doesn't match the files.
    """
    basis, spec = group.basis, group.recipe_of(package)
    floor = members_floor(members, basis.facts)
    components = licensed.components
    texts: list[FileMember | TextMember] = [
        FileMember(path, 0o644, entry.source, str(entry.artifact), path)
        for path, entry in licensed.texts.items()
        if entry.source is not None
    ]
    if spec.module:
        components = (*components, sdk_component(_OWN_TEXT))
        texts.append(TextMember(_OWN_TEXT, sdk_license()))
    files = (member for member in members if isinstance(member, FileMember))
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
        targets=tuple(dict.fromkeys(code for file in files for code in basis.facts.targets.get(file.source, ()))),
        floor_reason=floor.reason if floor else "",
    )


def _platform_tag(basis: PlanBasis, floor: PlatformFloor | None) -> str:
    """Return the tag from the options if the files run on its systems, or the tag that the files require."""
    given, source = basis.options.platform_tag, basis.options.platform_tag_source
    if given is None:
        return floor.tag if floor else basis.any_tag
    if basis.facts.platform is Platform.WINDOWS:
        check_platform_of_windows(given, source)
    else:
        check_platform_of_files(given, floor, source)
    return given


def members_floor(members: Iterable[Member], facts: Facts) -> PlatformFloor | None:
    """Return the oldest glibc that all files of the members run on, or `None` if there is no machine code."""
    return platform_floor(
        (file.origin, elf)
        for member in members
        for file in member_files(member)
        if (elf := facts.elves.get(file.source)) is not None
    )
