"""Finds the installed packages of the SDK by their folders, so that nothing is ever out of date."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from . import _build_info
from ._gpus.system import System
from ._select import CHOICE_VARIABLE, select
from ._trusted import SITE, find_trusted
from ._walk import is_folder, is_there

__all__ = [
    "Package",
    "describe_package",
    "find_module",
    "find_root",
    "installed_devices",
    "installed_families",
    "library_family",
    "metadata_folder",
    "metadata_folders",
    "release_of",
]


class Package(NamedTuple):
    """One distribution of the set."""

    dist: str
    """Name of the distribution, such as ``rocm-sdk-core``."""

    module: str
    """Import name of its Python code, empty for device packages."""

    platform_module: str
    """Import name of the folder that holds its files, such as ``_rocm_sdk_core``."""


def describe_package(logical: str, family: str = "") -> Package | None:
    """Return the names of a package (``core``, ``libraries`` ...), None when this release has no such package."""
    names = _build_info.PACKAGES.get(logical)
    if names is None:
        return None
    in_module = family.replace("-", "_")
    return Package(
        names["dist"].replace("{family}", family),
        names["module"].replace("{family}", in_module),
        names["platform_module"].replace("{family}", in_module),
    )


def find_root(logical: str) -> Path | None:
    """Return the folder that holds a package's files, None when the package isn't installed."""
    package = describe_package(logical, library_family() if _is_per_family(logical) else "")
    return find_module(package.platform_module) if package else None


def find_module(name: str) -> Path | None:
    """Return the folder of a package with an ``__init__.py``, first next to ``rocm_sdk``, then on ``sys.path``.

    Wheels with binaries may be installed elsewhere than pure ones: in ``lib64`` next to ``lib``. The working directory
    doesn't count, where anybody may have put such a folder. Raises `OSError` where it can't be told what is there.
    """
    neighbour = SITE / name
    if is_there(neighbour / "__init__.py"):
        return neighbour
    spec = find_trusted(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def library_family() -> str:
    """Return the family whose libraries to use: the choice, else the one installed, else the first that suits the GPU.

    Empty when none is installed and none can be chosen. A choice that this release lacks is ignored.
    """
    system = _system_with_valid_choice()
    installed = installed_families()
    if len(installed) == 1 and not system.variable(CHOICE_VARIABLE):
        return installed[0]
    selected = select(system).families
    wanted = [family for family in selected if family in installed] or list(selected) or installed
    return wanted[0] if wanted else ""


def installed_families() -> list[str]:
    """Return the families whose device code is installed."""
    if _build_info.LAYOUT == "neutral":
        return installed_devices()
    return [family for family in _build_info.FAMILIES if _has_libraries(family)]


def installed_devices() -> list[str]:
    """Return the GPU targets whose device packages are installed. Raises `OSError` where that can't be told."""
    device = describe_package("device")
    root = find_module(device.platform_module) if device else None
    links = root / ".devel_links" if root else None
    if links is None or not is_folder(links):
        return []
    return sorted((path.stem for path in links.iterdir() if path.suffix == ".json"), key=_target_order)


def metadata_folder(site: Path, dist: str) -> Path | None:
    """Return the ``.dist-info`` folder of an installed distribution, None when there is none in ``site``.

    Raises `OSError` where that can't be listed.
    """
    return next(iter(metadata_folders(site, dist)), None)


def metadata_folders(site: Path, dist: str) -> list[Path]:
    """Return all ``.dist-info`` folders of a distribution: there may be more than the installer's.

    Raises `OSError` where ``site`` can't be listed, which `Path.glob` takes for empty.
    """
    wanted = _normalize(dist)
    folders = sorted(path for path in site.iterdir() if path.suffix == ".dist-info")
    return [path for path in folders if _normalize(path.name.partition("-")[0]) == wanted]


def release_of(version: str) -> str:
    """Return a version without its post-release, which packs the same files again."""
    return re.sub(r"\.post\d+", "", version)


def _normalize(name: str) -> str:
    """Return a distribution's name in the one form that all its spellings share."""
    return re.sub("[-_.]+", "-", name).lower()


def _is_per_family(logical: str) -> bool:
    return logical == "libraries" and _build_info.LAYOUT == "per-family"


def _system_with_valid_choice() -> System:
    system = System()
    try:
        if system.variable(CHOICE_VARIABLE):
            select(system)
    except ValueError:  # `rocm-sdk doctor` and `rocm-sdk test` report it
        return System(environ={name: value for name, value in os.environ.items() if name != CHOICE_VARIABLE})
    return system


def _has_libraries(family: str) -> bool:
    package = describe_package("libraries", family)
    return package is not None and find_module(package.platform_module) is not None


def _target_order(target: str) -> tuple[int, str]:
    return len(target), target
