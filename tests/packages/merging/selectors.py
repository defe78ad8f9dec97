"""Selectors of builds, as sdists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocwheel.distributions.formats.sdist import sdist_name, sdist_stem, write_sdist
from rocwheel.distributions.tar.sdist_file import read_sdist
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.planning.sdk_source import render_literals
from rocwheel.packages.planning.selector.distributions import requires_txt
from tests.packages.selectors import literals, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["facts_of", "windows", "write_selector"]

BUILD_INFO = "src/rocm_sdk/_build_info.py"


def write_selector(
    folder: Path,
    *targets: str,
    change: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
    options: PlanOptions | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write the selector of a build for GPU targets; ``change`` returns literals that it has instead, from its own."""
    sdist = plan(*targets, options=options or PlanOptions(version="7.0.0")).sdists[0]
    info = literals(sdist.files[BUILD_INFO])
    info |= change(info) if change else {}
    texts = {**sdist.files, "src/rocm.egg-info/requires.txt": requires_txt(info), **(files or {})}
    texts[BUILD_INFO] = render_literals(info)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sdist_name(sdist.distribution, sdist.version)
    members = {name: text.encode() for name, text in texts.items()}
    write_sdist(path, sdist_stem(sdist.distribution, sdist.version), members, mtime=0)
    return path


def windows(info: dict[str, Any]) -> dict[str, Any]:
    """Return what a build for Windows says otherwise."""
    return {
        "PLATFORMS": ["win32"],
        "FAMILIES": {name: {**row, "platforms": ["win32"]} for name, row in info["FAMILIES"].items()},
        "LIBRARIES": {
            name: {**row, "directory": "bin", "pattern": f"{name}*.dll"} for name, row in info["LIBRARIES"].items()
        },
    }


def facts_of(path: Path) -> dict[str, Any]:
    """Return the literals of a selector."""
    return literals(read_sdist(path)[BUILD_INFO].decode())
