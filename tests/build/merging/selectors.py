"""Selectors of builds, as sdists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.planning.selector import requires_txt
from rocwheel.build.sdk_source import render_literals
from rocwheel.wheels.sdist import read_sdist, sdist_name, sdist_stem, write_sdist
from tests.build.selectors import literals, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rocwheel.build.plan import PlannedSdist

__all__ = ["facts_of", "on_machine", "windows", "write_plan", "write_selector"]

BUILD_INFO = "src/rocm_sdk/_build_info.py"


def write_selector(
    folder: Path,
    *targets: str,
    change: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    options: PlanOptions | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write the selector of a build for GPU targets; ``change`` returns literals that it has instead, from its own."""
    sdist = _changed(plan(*targets, options=options or PlanOptions(version="7.0.0")).sdists[0], change, files or {})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sdist_name(sdist.distribution, sdist.version)
    members = {name: text.encode() for name, text in sdist.files.items()}
    write_sdist(path, sdist_stem(sdist.distribution, sdist.version), members, mtime=0)
    return path


def write_plan(
    path: Path,
    *targets: str,
    change: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    options: PlanOptions | None = None,
) -> Path:
    """Write the plan of the same build as `write_selector`, as ``rocwheel plan --json`` prints it."""
    made = plan(*targets, options=options or PlanOptions(version="7.0.0"))
    made = msgspec.structs.replace(made, sdists=tuple(_changed(sdist, change, {}) for sdist in made.sdists))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode({"schema": "rocwheel.plan/1", **msgspec.to_builtins(made)}))
    return path


def _changed(
    sdist: PlannedSdist,
    change: Callable[[dict[str, Any]], Mapping[str, Any]] | None,
    files: Mapping[str, str],
) -> PlannedSdist:
    info = literals(sdist.files[BUILD_INFO])
    info |= change(info) if change else {}
    texts = {**sdist.files, "src/rocm.egg-info/requires.txt": requires_txt(info), **files}
    return msgspec.structs.replace(sdist, files={**texts, BUILD_INFO: render_literals(info)})


def windows(info: dict[str, Any]) -> dict[str, Any]:
    """Return what a build for Windows says otherwise."""
    return {
        "PLATFORMS": ["win32"],
        "MACHINES": {"win32": ["AMD64"]},
        "FAMILIES": {name: {**row, "platforms": ["win32"]} for name, row in info["FAMILIES"].items()},
        "LIBRARIES": {
            name: {**row, "directory": "bin", "pattern": f"{name}*.dll", "needs": ["amd_comgr"]}
            for name, row in info["LIBRARIES"].items()
        },
    }


def on_machine(*machines: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what changes a build into one for Linux on other machines."""
    return lambda _: {"MACHINES": {"linux": list(machines)}}


def facts_of(path: Path) -> dict[str, Any]:
    """Return the literals of a selector."""
    return literals(read_sdist(path)[BUILD_INFO].decode())
