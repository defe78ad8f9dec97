"""Finds the installed packages of the SDK by looking at their folders, so that the result is always current.

Files in the working directory are ignored, because anyone may have created them. ``python -c`` and ``python -m`` search
that folder first. An empty entry in ``PYTHONPATH`` also adds that folder, and a relative entry adds a folder relative
to it.
"""

from __future__ import annotations

import os
import re
import site
import sys
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from . import _build_info
from ._files import is_folder, is_there
from ._select import CHOICE_VARIABLE, select
from ._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

SITE = Path(__file__).parent.parent
"""The folder in which ``rocm_sdk`` is installed."""


class Package(NamedTuple):
    """A distribution in the set."""

    dist: str
    """The name of the distribution, such as ``rocm-sdk-core``."""

    module: str
    """The import name of the Python code. Empty for device packages."""

    platform_module: str
    """The import name of the folder with the files, such as ``_rocm_sdk_core``."""


def describe_package(logical: str, family: str = "") -> Package | None:
    """Return the names of a package (``core``, ``libraries``, ...), or `None` if this release doesn't have it."""
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
    """Return the folder with a package's files, or `None` if the package isn't installed."""
    is_per_family = logical == "libraries" and _build_info.LAYOUT == "per-family"
    package = describe_package(logical, library_family() if is_per_family else "")
    return find_module(package.platform_module) if package else None


def find_module(name: str) -> Path | None:
    """Return the folder of a package with an ``__init__.py``.

    Look next to ``rocm_sdk`` first, and then on ``sys.path``.

    Installers may put wheels with binaries into a different folder than pure-Python wheels, such as ``lib64`` instead
    of ``lib``. Raises `OSError` if the system can't determine this.
    """
    neighbor = SITE / name
    if is_there(neighbor / "__init__.py"):
        return neighbor
    spec = find_trusted(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def library_family() -> str:
    """Return the family whose libraries to use: the user's choice, the installed family, or the GPU's first family.

    Return an empty string if no family is installed and no family can be chosen. Unavailable choices are ignored.
    """
    system = _system_with_valid_choice()
    installed = installed_families()
    if len(installed) == 1 and not system.variable(CHOICE_VARIABLE):
        return installed[0]
    selected = select(system).families
    wanted = [family for family in selected if family in installed] or list(selected) or installed
    return wanted[0] if wanted else ""


def _system_with_valid_choice() -> System:
    system = System()
    try:
        if system.variable(CHOICE_VARIABLE):
            select(system)
    except ValueError:  # `rocm-sdk doctor` and `rocm-sdk test` report this error
        return System(environ={name: value for name, value in os.environ.items() if name != CHOICE_VARIABLE})
    return system


def installed_families() -> list[str]:
    """Return the families whose device code is installed."""
    if _build_info.LAYOUT == "neutral":
        return installed_devices()
    libraries = {family: describe_package("libraries", family) for family in _build_info.FAMILIES}
    return [family for family, package in libraries.items() if package and find_module(package.platform_module)]


def installed_devices() -> list[str]:
    """Return the GPU targets whose device packages are installed.

    Raises `OSError` if the system can't determine this.
    """
    device = describe_package("device")
    root = find_module(device.platform_module) if device else None
    links = root / ".devel_links" if root else None
    if links is None or not is_folder(links):
        return []
    targets = (path.stem for path in links.iterdir() if path.suffix == ".json")
    return sorted(targets, key=lambda target: (len(target), target))


def metadata_folders(site: Path, dist: str) -> list[Path]:
    """Return all ``.dist-info`` folders of a distribution. There may be others in addition to the installer's folder.

    Raises `OSError` if ``site`` can't be listed. `Path.glob` would return an empty result.
    """
    wanted = normalize_name(dist)
    folders = sorted(path for path in site.iterdir() if path.suffix == ".dist-info")
    return [path for path in folders if normalize_name(path.name.partition("-")[0]) == wanted]


def release_of(version: str) -> str:
    """Return a version without its post-release segment. A post-release contains the same files."""
    return re.sub(r"\.post\d+", "", version)


def normalize_name(name: str) -> str:
    """Return the normalized name of a distribution."""
    return re.sub("[-_.]+", "-", name).lower()


def find_trusted(name: str) -> ModuleSpec | None:
    """Return the import spec of a top-level module, or `None` if it is missing or only in the working directory."""
    invalidate_caches()
    return PathFinder.find_spec(name, trusted_entries())


def is_trusted(name: str) -> bool:
    """Return whether a module or submodule can be imported without running code from the working directory."""
    top = name.partition(".")[0]
    return name in sys.modules or _places(PathFinder.find_spec(top)) == _places(find_trusted(top))


def _places(spec: ModuleSpec | None) -> tuple[str | None, list[str]]:
    """Return the file of a module, and the folders that Python searches for its submodules."""
    return (spec.origin, list(spec.submodule_search_locations or ())) if spec else (None, [])


def trusted_entries() -> list[str]:
    """Return the entries of ``sys.path``, except the working directory and entries relative to it.

    If such an entry contains Python or ``rocm_sdk``, it is included, because all imports then come from there anyway.
    """
    real = os.path.realpath
    installed = (*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.__file__), str(SITE))  # noqa: PTH120
    refused = {*map(real, _relative_folders())} - {*map(real, installed)}
    return [entry for entry in sys.path if os.path.isabs(entry) and real(entry) not in refused]  # noqa: PTH117


def _relative_folders() -> list[str]:
    """Return the working directory and the folders of relative ``PYTHONPATH`` entries.

    Python turns these entries into absolute paths. The result is empty if the working directory was removed.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 (text, like the entries)
    except OSError:
        return []
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [here, *(os.path.join(here, entry) for entry in entries if not os.path.isabs(entry))]  # noqa: PTH117, PTH118
