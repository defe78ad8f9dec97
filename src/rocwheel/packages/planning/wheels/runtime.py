"""Wheels of runtime packages, with their console scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.artifacts.sdk_files import with_declared_targets
from rocwheel.packages.plan import PlannedWheel, TextMember
from rocwheel.packages.planning.sdk_source import render_literals, script_function
from rocwheel.packages.planning.wheels.shipped import module_files, shipped_members
from rocwheel.packages.planning.wheels.wheel import make_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.packages.licensing.licensed import LicensedFiles
    from rocwheel.packages.planning.group import PackageGroup
    from rocwheel.packages.planning.place_packages import PlacedPackage
    from rocwheel.packages.recipe.recipe import ConsoleScript

__all__ = ["plan_runtime_wheel"]


def plan_runtime_wheel(
    group: PackageGroup, package: PlacedPackage, licensed: LicensedFiles, targets: Sequence[str]
) -> PlannedWheel:
    """Plan the wheel of a runtime package; ``targets`` are those that the whole SDK has code for."""
    spec = group.recipe_of(package)
    scripts = {name: script for name, script in spec.console_scripts.items() if package.placement.has(script.path)}
    modules = module_files(group, package)
    texts = {f"{package.module}/{path}": text for path, text in modules.items()}
    texts[f"{package.platform_module}/__init__.py"] = ""
    if spec.console_scripts:
        texts[f"{package.module}/_build_info.py"] = _script_info(group, package, scripts)
    if spec.dist_info:
        facts = with_declared_targets(spec.dist_info, b"{}", targets)
        texts[f"{package.platform_module}/{spec.dist_info}"] = facts.decode()
    members = [member for member in shipped_members(group, package) if member.path not in texts]
    members += [TextMember(path, text) for path, text in texts.items()]
    entry_points = {name: f"{package.module}._cli:{script_function(name)}" for name in scripts}
    wheel = make_wheel(group, package, members, licensed, group.required(package))
    return msgspec.structs.replace(wheel, console_scripts=entry_points)


def _script_info(group: PackageGroup, package: PlacedPackage, scripts: dict[str, ConsoleScript]) -> str:
    devel = next((other for other in group.by_key.values() if group.recipe_of(other).kind == "devel"), None)
    devel = devel if any(script.expands for script in scripts.values()) else None
    return render_literals(
        {
            "PLATFORM_MODULE": package.platform_module,
            "DEVEL_MODULE": devel.platform_module if devel else "",
            "DEVEL_PACKAGE": devel.module if devel else "",
            "SDK_MODULE": group.basis.recipe.selector.module,
            "SCRIPTS": {name: _script_row(group, package, script) for name, script in scripts.items()},
        }
    )


def _script_row(group: PackageGroup, package: PlacedPackage, script: ConsoleScript) -> dict[str, Any]:
    row: dict[str, Any] = {"path": script.path, "expands": script.expands}
    if script.check is not None:
        row["check"] = list(script.check)
    if script.gpu:
        row["gpu"] = True
    if script.prepend:
        row["prepend"] = {name: list(group.folders(places, package)) for name, places in script.prepend.items()}
    return row
