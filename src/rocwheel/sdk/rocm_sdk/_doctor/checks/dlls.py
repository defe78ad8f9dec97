"""Checks what the loader of Windows does not say, or by a number alone: DLLs that are missing, paths too long."""

from __future__ import annotations

from ... import _build_info
from ..._dlls.load import search_folders
from ..._dlls.missing import LONGEST_PATH, describe_missing, missing_of, remedy_of
from ..._gpus.access import ERROR, NOTE, WARNING, Diagnosis
from ..._gpus.windows import system_program
from ..._packages import find_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..._gpus.system import System
    from ..._platform.windows import Windows

__all__ = ["check_dlls"]

KERNELS = "bin/rocblas/library"
LONGEST_KERNELS = 174
"""Characters of the path of rocBLAS's kernels above which Tensile was seen to break the process."""


def check_dlls(system: System, platform: Windows) -> list[Diagnosis]:
    """Return what keeps DLLs of the packages from being loaded, and what of the driver has their names."""
    paths = _installed_dlls(platform)
    return [*_check_imports(paths, platform), *_check_lengths(paths), *_check_driver(system)]


def _check_imports(paths: list[Path], platform: Windows) -> Iterator[Diagnosis]:
    folders = search_folders()
    told = set()
    for path in paths:
        searched, missing = missing_of(path, folders, platform.calls)
        for one in missing:
            if one.name.lower() not in told:
                told.add(one.name.lower())
                yield Diagnosis(ERROR, describe_missing(one, searched), remedy_of(one))


def _installed_dlls(platform: Windows) -> list[Path]:
    """Return the DLLs that are there; `files` reports those that are not, by RECORD."""
    places = ((find_root(info["package"]), info) for info in _build_info.LIBRARIES.values())
    paths = (root / info["directory"] / info["pattern"] for root, info in places if root)
    return [path for path in paths if platform.extended(path).is_file()]


def _check_lengths(paths: list[Path]) -> Iterator[Diagnosis]:
    remedy = "Install into an environment in a folder with a shorter path"
    long = [path for path in paths if len(str(path)) > LONGEST_PATH]
    if long:
        text = f"{long[0]} has {len(str(long[0]))} characters: Windows loads DLLs from paths of {LONGEST_PATH}"
        yield Diagnosis(ERROR, text, remedy)
    root = find_root("libraries")
    folder = root / KERNELS if root else None
    if folder and folder.is_dir() and len(str(folder)) > LONGEST_KERNELS:
        text = f"{folder} has {len(str(folder))} characters: rocBLAS is known to fail above {LONGEST_KERNELS}"
        yield Diagnosis(WARNING, text, remedy)


def _check_driver(system: System) -> Iterator[Diagnosis]:
    folder = system_program(system, "").rstrip("\\")
    own = {info["pattern"].lower() for info in _build_info.LIBRARIES.values()}
    shared = [name for name in system.list_names(folder) if name.lower() in own]
    if shared:
        text = f"{folder} has {', '.join(shared)} of the graphics driver: programs get these unless rocm_sdk came first"
        yield Diagnosis(NOTE, text, "In Python, call rocm_sdk.initialize_process before anything else loads ROCm")
