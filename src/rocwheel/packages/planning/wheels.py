"""From placed packages to planned wheels: members, tags, metadata, console scripts."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.stubs.forwarding_library import forwarding_name
from rocwheel.distributions.formats.metadata import CoreMetadata
from rocwheel.distributions.formats.platform_floor import PlatformFloor, oldest_tag, platform_floor
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.packages.plan import AliasMember, Dropped, FileMember, Member, PlannedWheel, TarMember, TextMember
from rocwheel.packages.planning.devel_tar import DevelTree
from rocwheel.packages.planning.members import MemberMaker, PlacedPackage, installed_places
from rocwheel.packages.planning.sdk_source import render_literals, script_function, sdk_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.links import PrefixIndex
    from rocwheel.packages.layout.facts import Facts
    from rocwheel.packages.layout.selection import PrefixEntries
    from rocwheel.packages.planning.options import PlanOptions
    from rocwheel.packages.recipe.recipe import ConsoleScript, Package, Recipe

__all__ = ["WheelPlanner", "members_floor"]

_TAR_SUFFIX = {"none": "", "xz": ".xz", "zst": ".zst"}
_ZSTD_REQUIREMENT = "backports.zstd; python_version < '3.14'"


class WheelPlanner:
    """Plans the wheels of packages that are installed together in one site-packages."""

    def __init__(
        self,
        recipe: Recipe,
        facts: Facts,
        group: Sequence[PlacedPackage],
        version: str,
        machine: int,
        options: PlanOptions,
        compress_for: str | None,
    ) -> None:
        self._recipe = recipe
        self._facts = facts
        self._group = {package.key: package for package in group if recipe.packages[package.key].kind != "device"}
        self._places = installed_places(group)
        self._version = version
        self._options = options
        self._compress_for = compress_for
        self._machine = machine

    def runtime_wheel(self, package: PlacedPackage, licenses: PrefixEntries, targets: Sequence[str]) -> PlannedWheel:
        """Plan the wheel of a runtime package; ``targets`` are those that the whole SDK has code for."""
        spec = self._recipe.packages[package.key]
        scripts = {name: script for name, script in spec.console_scripts.items() if package.placement.has(script.path)}
        texts = {f"{package.module}/{path}": text for path, text in sdk_module(spec.module).items()}
        texts[f"{package.platform_module}/__init__.py"] = ""
        if spec.console_scripts:
            texts[f"{package.module}/_build_info.py"] = self._script_info(package, scripts)
        if spec.dist_info:
            facts = {"dist_amdgpu_targets": ";".join(targets)}
            texts[f"{package.platform_module}/{spec.dist_info}"] = json.dumps(facts) + "\n"
        files = [*self._maker(spec, package).members(package), *self._unversioned(spec, package)]
        members: list[Member] = [member for member in files if member.path not in texts]
        members += [TextMember(path, text) for path, text in texts.items()]
        entry_points = {name: f"{package.module}._cli:{script_function(name)}" for name in scripts}
        requires = [self._group[key].distribution for key in spec.requires if key in self._group]
        wheel = self._wheel(package, members, licenses, requires)
        return msgspec.structs.replace(wheel, console_scripts=entry_points)

    def device_wheel(self, package: PlacedPackage, licenses: PrefixEntries) -> PlannedWheel:
        """Plan the wheel of one GPU target's files, which go into another package's platform module."""
        spec = self._recipe.packages[package.key]
        members: list[Member] = [*self._maker(spec, package).members(package)]
        members += self._unversioned(spec, package)
        paths = sorted(member.path.removeprefix(f"{package.platform_module}/") for member in members)
        links = [
            {"relpath": path, "target": posixpath.join("../" * path.count("/"), "..", package.platform_module, path)}
            for path in paths
        ]
        manifest = json.dumps({"version": self._version, "links": links}, indent=1) + "\n"
        members.append(TextMember(f"{package.platform_module}/.devel_links/{package.variant}.json", manifest))
        # pip removes the folders that become empty only below those in which the distribution has a file of its own.
        members.append(TextMember(f"{package.platform_module}/.device-{package.variant}", ""))
        requires = [self._group[key].distribution for key in spec.requires if key in self._group]
        return self._wheel(package, members, licenses, requires)

    def devel_wheel(
        self, package: PlacedPackage, selected: PrefixEntries, prefix: PrefixIndex, licenses: PrefixEntries
    ) -> tuple[PlannedWheel, list[Dropped]]:
        """Plan the wheel that carries the devel tar, and tell what has no place in it."""
        compression = self._options.devel_compression
        spec = self._recipe.packages[package.key]
        tree = DevelTree(package.platform_module, selected, prefix, tuple(self._group.values()))
        entries = tree.entries(self._maker(spec, package))
        members: list[Member] = [
            TarMember(f"{package.module}/_devel.tar{_TAR_SUFFIX[compression]}", compression, tuple(entries)),
            *(TextMember(f"{package.module}/{path}", text) for path, text in sdk_module(spec.module).items()),
        ]
        linked = tree.linked | set(spec.requires)
        requires = [placed.distribution for key, placed in self._group.items() if key in linked]
        wheel = self._wheel(package, members, licenses, requires)
        if compression == "zst":
            metadata = wheel.metadata
            metadata = msgspec.structs.replace(metadata, requires=(*metadata.requires, _ZSTD_REQUIREMENT))
            wheel = msgspec.structs.replace(wheel, metadata=metadata)
        return wheel, tree.dropped

    def _maker(self, spec: Package, package: PlacedPackage) -> MemberMaker:
        search = tuple(self._folder(place, package) for place in spec.search if self._is_here(place, package))
        tag = RunpathTag(self._recipe.run_path_tag)
        trim = self._options.device_code == "trim"
        return MemberMaker(self._facts, self._places, search, tag, self._compress_for, trim)

    def _is_here(self, place: str, package: PlacedPackage) -> bool:
        return place.partition(":")[0] in {*self._group, package.key}

    def _folder(self, place: str, package: PlacedPackage) -> str:
        key, _, folder = place.partition(":")
        module = package.platform_module if key == package.key else self._group[key].platform_module
        return posixpath.join(module, folder)

    def _script_info(self, package: PlacedPackage, scripts: dict[str, ConsoleScript]) -> str:
        devel = next((self._group[key] for key in self._group if self._recipe.packages[key].kind == "devel"), None)
        devel = devel if any(script.expands for script in scripts.values()) else None
        return render_literals(
            {
                "VERSION": self._version,
                "PLATFORM_MODULE": package.platform_module,
                "DEVEL_MODULE": devel.platform_module if devel else "",
                "DEVEL_PACKAGE": devel.module if devel else "",
                "SDK_MODULE": self._recipe.selector.module,
                "SCRIPTS": {name: self._script_row(script, package) for name, script in scripts.items()},
            }
        )

    def _script_row(self, script: ConsoleScript, package: PlacedPackage) -> dict[str, Any]:
        row: dict[str, Any] = {"path": script.path, "expands": script.expands}
        if script.check is not None:
            row["check"] = list(script.check)
        if script.gpu:
            row["gpu"] = True
        if script.prepend:
            row["prepend"] = {
                variable: [self._folder(place, package) for place in places if self._is_here(place, package)]
                for variable, places in script.prepend.items()
            }
        return row

    def _wheel(
        self, package: PlacedPackage, members: Sequence[Member], licenses: PrefixEntries, requires: Iterable[str]
    ) -> PlannedWheel:
        spec = self._recipe.packages[package.key]
        floor = members_floor(members, self._facts)
        tag = self._options.platform_tag or (floor.tag if floor else oldest_tag(self._machine))
        texts = tuple(_license_members(licenses))
        metadata = CoreMetadata(
            package.distribution,
            self._version,
            spec.summary.format(target=package.variant, family=package.variant),
            requires_python=self._recipe.requires_python,
            license_expression=self._recipe.license,
            license_files=tuple(member.path for member in texts),
            requires=tuple(f"{name}=={self._version}" for name in requires),
        )
        return PlannedWheel(
            package.key,
            WheelName(package.distribution, self._version, f"py3-none-{tag}"),
            metadata,
            tuple(members),
            texts,
            targets=self._targets(members),
            floor_reason=floor.reason if floor else "",
        )

    def _targets(self, members: Iterable[Member]) -> tuple[str, ...]:
        files = (member for member in members if isinstance(member, FileMember))
        return tuple(dict.fromkeys(target for file in files for target in self._facts.targets.get(file.source, ())))

    def _unversioned(self, spec: Package, package: PlacedPackage) -> Iterator[AliasMember]:
        """Give a forwarding library under the plain name of each library that is also opened without its version."""
        patterns = PathPatterns(spec.unversioned) if spec.unversioned else None
        tag = RunpathTag(self._recipe.run_path_tag)
        for path, file in package.placement.files.items():
            elf = self._facts.elf(file.entry)
            if patterns is None or elf is None or not elf.soname or not patterns.matches(path):
                continue
            plain = posixpath.join(posixpath.dirname(path), forwarding_name(elf.soname))
            if not package.placement.has(plain):
                place = posixpath.join(package.platform_module, plain)
                yield AliasMember(place, elf.soname, elf.machine, str(file.entry.artifact), tag)


def members_floor(members: Iterable[Member], facts: Facts) -> PlatformFloor | None:
    """Return the oldest glibc that the files among the members run on, none when there is no machine code."""
    return platform_floor(
        (file.origin, elf)
        for member in members
        for file in _files(member)
        if (elf := facts.elves.get(file.source)) is not None
    )


def _files(member: Member) -> Iterator[FileMember]:
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file is not None)


def _license_members(licenses: PrefixEntries) -> Iterator[FileMember]:
    for path, entry in licenses.items():
        if entry.source is not None:
            yield FileMember(path, 0o644, entry.source, str(entry.artifact), path)
