"""Wheels of the files of single GPU targets."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING

from rocwheel.packages.plan import TextMember
from rocwheel.packages.planning.wheels.shipped import shipped_members
from rocwheel.packages.planning.wheels.wheel import make_wheel

if TYPE_CHECKING:
    from rocwheel.packages.licensing.licensed import LicensedFiles
    from rocwheel.packages.plan import PlannedWheel
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["plan_device_wheel"]


def plan_device_wheel(group: PackageGroup, package: PlacedPackage, licensed: LicensedFiles) -> PlannedWheel:
    """Plan the wheel of one GPU target's files, which go into another package's platform module."""
    root = package.platform_module
    members = shipped_members(group, package)
    # pip removes the folders that become empty only below those in which the distribution has a file of its own.
    members.append(TextMember(f"{root}/.device-{package.variant}", ""))
    paths = sorted(member.path.removeprefix(f"{root}/") for member in members)
    links = [{"relpath": path, "target": posixpath.join("../" * path.count("/"), "..", root, path)} for path in paths]
    manifest = json.dumps({"version": group.basis.version, "links": links}, indent=1) + "\n"
    members.append(TextMember(f"{root}/.devel_links/{package.variant}.json", manifest))
    return make_wheel(group, package, members, licensed, group.required(package))
