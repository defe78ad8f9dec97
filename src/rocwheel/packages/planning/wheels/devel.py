"""Wheels of development files, which are in a tar."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.binary.platform import Platform
from rocwheel.packages.plan import Dropped, TarMember, TextMember
from rocwheel.packages.planning.wheels.devel_tar import DevelTar
from rocwheel.packages.planning.wheels.shipped import forwarding_members, module_files
from rocwheel.packages.planning.wheels.wheel import make_wheel
from rocwheel.packages.planning.windows.devel_links import LINKS_NAME, part_links, render_links

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.artifacts.catalog import PrefixIndex
    from rocwheel.packages.layout.selection import PrefixEntries
    from rocwheel.packages.licensing.licensed import LicensedFiles
    from rocwheel.packages.plan import Member, PlannedWheel, TarEntry
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.planning.place_packages import PlacedPackage
    from rocwheel.packages.planning.windows.devel_links import LostLink

__all__ = ["plan_devel_wheel"]

_TAR_SUFFIX = {"none": "", "xz": ".xz", "zst": ".zst"}


def plan_devel_wheel(
    group: PackageGroup, package: PlacedPackage, selected: PrefixEntries, prefix: PrefixIndex, licensed: LicensedFiles
) -> tuple[PlannedWheel, list[Dropped]]:
    """Plan the wheel that carries the devel tar; also return the entries that have no place in it."""
    spec, modules = group.recipe_of(package), module_files(group, package)
    tree = DevelTar(package.platform_module, selected, prefix, tuple(group.by_key.values()))
    for overlaid in group.overlaid:
        forwarding = forwarding_members(group, overlaid)
        tree.mirror(overlaid, [member.path.removeprefix(f"{overlaid.platform_module}/") for member in forwarding])
    tar, texts, lost = _devel_tar(group, package, tree.entries(group.member_maker(package)))
    members: list[Member] = [tar]
    members += [TextMember(f"{package.module}/{path}", text) for path, text in (modules | texts).items()]
    linked = tree.linked | set(spec.requires)
    requires = [placed.distribution for key, placed in group.by_key.items() if key in linked]
    wheel = make_wheel(group, package, members, licensed, requires)
    dropped = [Dropped(one.path, str(selected[one.link].artifact), f"a symlink {one.reason}") for one in lost]
    return wheel, [*tree.dropped, *dropped]


def _devel_tar(
    group: PackageGroup, package: PlacedPackage, entries: Sequence[TarEntry]
) -> tuple[TarMember, dict[str, str], tuple[LostLink, ...]]:
    """Return the devel tar, the texts beside it, and lost links: on Windows, the texts name the links, not the tar."""
    compression = group.basis.options.devel_compression
    texts: dict[str, str] = {}
    links: dict[str, str] = {}
    lost: tuple[LostLink, ...] = ()
    if group.basis.facts.platform is Platform.WINDOWS:
        parted = part_links(package.platform_module, entries, _other_files(group))
        entries, links, lost = parted.files, parted.links, parted.lost
        texts = {LINKS_NAME: render_links(links)}
    name = f"{package.module}/_devel.tar{_TAR_SUFFIX[compression]}"
    linked = tuple(posixpath.join(package.platform_module, path) for path in links)
    return TarMember(name, compression, tuple(entries), linked), texts, lost


def _other_files(group: PackageGroup) -> Iterator[str]:
    """Yield the paths in site-packages of what the packages without development files have."""
    for package in group.by_key.values():
        for path in (*package.placement.files, *package.placement.stubs):
            yield posixpath.join(package.platform_module, path)
