"""Finds public libraries by their short names, and libraries for the machine's GPU.

A library for a single target, ``libx.so.1.gfx906``, is next to the library for all targets, ``libx.so.1``, and has the
same SONAME. Once a process has loaded one of the two, all later requests for that SONAME return the same library.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path
from typing import NamedTuple

from . import _build_info
from ._gpus import base_target, survey_gpus, visible_gpus
from ._installing import installation_hint
from ._packages import find_root, installed_devices
from ._platform import this_platform
from ._select import CHOICE_VARIABLE, family_serving, select
from ._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._gpus import Gpu

_LOADED: dict[Path, ctypes.CDLL] = {}
"""Handles of the loaded libraries for a single target, keyed by the path of the corresponding library for all GPUs."""


def locate_libraries(shortnames: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the short name and the absolute path of each library. Optional libraries that are absent are left out.

    The result contains the libraries for all GPUs, even if there are libraries for the machine's GPU. Raises
    `ModuleNotFoundError` for unknown names and for missing packages. The message contains the command that installs all
    missing packages. Raises `FileNotFoundError` for a library that is missing from its package.
    """
    entries = [(name, _describe(name)) for name in shortnames]
    roots = {entry["package"]: find_root(entry["package"]) for _, entry in entries}
    missing = [package for package, root in roots.items() if root is None]
    if missing:
        wanted = ", ".join(name for name, entry in entries if entry["package"] in missing)
        msg = (
            f"ROCm libraries not installed: {wanted} (in the package {', '.join(missing)}). "
            f"Install with: {installation_hint(*missing)}"
        )
        raise ModuleNotFoundError(msg)
    found = []
    for name, entry in entries:
        folder = (roots[entry["package"]] or Path()) / entry["directory"]
        matches = this_platform().extended(folder).glob(entry["pattern"])
        path = min((folder / match.name for match in matches if match.is_file()), default=None)
        if path:
            found.append((name, path))
        elif not entry["optional"]:
            msg = f"ROCm library {name!r}: nothing matches {entry['pattern']!r} in {folder}. Reinstall the package."
            raise FileNotFoundError(msg)
    return found


def _describe(name: str) -> _build_info.LibraryInfo:
    try:
        return _build_info.LIBRARIES[name]
    except KeyError:
        msg = f"Unknown ROCm library {name!r}. Known libraries: {', '.join(_build_info.LIBRARIES)}"
        raise ModuleNotFoundError(msg) from None


def chosen_library(name: str, path: Path) -> Path:
    """Return the file to load instead of ``path``, which is the library ``name`` for all GPUs."""
    if path.relative_to(_root(name)).as_posix() not in _build_info.OVERLAID.get(name, ()):
        return path
    chosen = _beside(path, choose_device(System()).device)
    return chosen if chosen.is_file() else path


def load_chosen(name: str, mode: int) -> dict[Path, ctypes.CDLL]:
    """Load the library ``name`` for the GPU, after its dependencies.

    Return the handle of each loaded file, keyed by the path of the library for all GPUs. If a library for all GPUs is
    already loaded, it stays loaded, and a warning is printed. Raises `OSError` for a library that can't be loaded.
    """
    paths = [_root(name) / path for path in _build_info.OVERLAID.get(name, ())]
    if not paths:
        return {}
    choice = choose_device(System())
    found = {path: _beside(path, choice.device) for path in paths}
    there = {path: chosen for path, chosen in found.items() if choice.device and chosen.is_file()}
    # `rocm-sdk doctor` reports integrated GPUs.
    others = ", ".join(dict.fromkeys(base_target(gpu.target) for gpu in choice.left_out if not gpu.integrated))
    if there and others:
        msg = (
            f"This process uses the ROCm libraries for {choice.device}, which have no code for {others}. "
            "Run a separate process for each kind of GPU, and hide the other kinds from it with ROCR_VISIBLE_DEVICES."
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=3)
    return {path: _load(path, chosen, mode) for path, chosen in there.items()}


def _root(name: str) -> Path:
    return find_root(_build_info.LIBRARIES[name]["package"]) or Path()


def _beside(path: Path, device: str) -> Path:
    return path.with_name(f"{path.name}.{device}")


def _load(path: Path, chosen: Path, mode: int) -> ctypes.CDLL:
    if path not in _LOADED:
        # The loaded library with this SONAME, or `None`.
        try:
            earlier = ctypes.CDLL(path.name, mode=mode | os.RTLD_NOLOAD)
        except OSError:
            earlier = None
        if earlier and not _is_mapped(chosen):
            msg = (
                f"{path.name} was loaded before rocm_sdk could choose {chosen.name}: this process uses the code for "
                "all GPUs. Call rocm_sdk.initialize_process or preload_libraries first."
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=5)
        _LOADED[path] = earlier or ctypes.CDLL(str(chosen), mode=mode)
    return _LOADED[path]


def _is_mapped(path: Path) -> bool:
    """Return whether the process has loaded this file. The kernel reports paths without symbolic links."""
    real = os.path.realpath(path)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123 (as elsewhere)
        return any(line.rstrip("\n").endswith(f" {real}") for line in maps)


class DeviceChoice(NamedTuple):
    """The libraries that a process uses."""

    device: str
    """The target of an installed device package, or an empty string for the libraries for all GPUs."""

    left_out: list[Gpu]
    """The visible GPUs for which these libraries have no code."""


def choose_device(system: System) -> DeviceChoice:
    """Choose libraries for the GPUs that are visible to this process.

    If the user chose a single package, use it. Otherwise, use the first of these that exists:

    * a package for all visible GPUs, from the user's choices if there are any
    * the libraries for all GPUs, if they have code for each GPU
    * the package for the first GPU that has a package, with integrated GPUs last

    A process can't load several libraries with the same name.
    """
    gpus = list(visible_gpus(system, survey_gpus(system)[0]).values())
    installed = installed_devices()
    asked = [device for device in _asked(system) if device in installed]
    device = asked[0] if len(asked) == 1 else _device_for(system, gpus, asked or installed)
    return DeviceChoice(device, [gpu for gpu in gpus if not _serves(device, gpu, system)])


def _asked(system: System) -> tuple[str, ...]:
    """Return the user's choice. An unavailable choice is left out, because other code reports it."""
    try:
        return select(system).families if system.variable(CHOICE_VARIABLE) else ()
    except ValueError:
        return ()


def _device_for(system: System, gpus: list[Gpu], installed: list[str]) -> str:
    serving = {gpu: family_serving(gpu.target, system.platform) for gpu in gpus}
    devices = {family if family in installed else "" for family in serving.values()}
    if len(devices) > 1 and all(_serves("", gpu, system) for gpu in gpus):
        return ""
    ordered = sorted(gpus, key=lambda gpu: gpu.integrated)
    return next((device for gpu in ordered if (device := serving[gpu] or "") in installed), "")


def _serves(device: str, gpu: Gpu, system: System) -> bool:
    if device:
        return family_serving(gpu.target, system.platform) == device
    return base_target(gpu.target) in _build_info.COMMON_GPUS
