"""Checks that the installed packages match each other, and that the development files are or can be expanded."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError

from . import _build_info
from ._devel import require_whole
from ._devel_links import absent_links
from ._devel_place import DevelError, find_place
from ._distributions import find_distribution
from ._gpu_access import ERROR, Diagnosis
from ._installing import installation_hint
from ._packages import installed_devices, release_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._devel_place import DevelPlace
    from ._system import System

UNKNOWN = "unknown version"

SYSTEMS = {"linux": "Linux", "win32": "Windows"}
"""The names of systems, keyed by ``sys.platform`` value."""

HINT_FOR_OTHERS = "Run rocm-sdk doctor on the system that uses the packages, or install the packages for this system"


def installed_packages() -> list[tuple[str, str, str]]:
    """Return the name, extra, and version of each installed package. ``core`` and ``meta`` aren't extras."""
    devices = dict.fromkeys([*_build_info.FAMILIES, *installed_devices()])
    extras = {}
    for logical, names in _build_info.PACKAGES.items():
        if "{family}" in names["dist"]:
            extras.update({names["dist"].replace("{family}", family): f"{logical}-{family}" for family in devices})
        else:
            extras[names["dist"]] = logical
    found = ((dist, extra, _version(dist)) for dist, extra in extras.items())
    return [row for row in found if row[2]]


def _version(dist: str) -> str:
    """Return a distribution's version; empty if it isn't installed, or `UNKNOWN` if METADATA has no version."""
    try:
        return find_distribution(dist).version or UNKNOWN
    except PackageNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError, OSError):  # METADATA is missing, isn't text, or has no version
        return UNKNOWN


def deviating_versions() -> dict[str, str]:
    """Return the version of each installed distribution in the set that doesn't belong to this release."""
    found = {dist: text for dist, _, text in installed_packages()}
    return {dist: text for dist, text in found.items() if release_of(text) != release_of(_build_info.VERSION)}


def check_versions() -> list[Diagnosis]:
    """Return an error if packages from different releases are installed.

    Such packages link to files and symbols that don't exist in other releases.
    """
    deviating = deviating_versions()
    if not deviating:
        return []
    listed = ", ".join(f"{dist} has version {text}" for dist, text in deviating.items())
    text = f"{_build_info.PACKAGES['meta']['dist']} has version {_build_info.VERSION}, but {listed}"
    return [Diagnosis(ERROR, text, installation_hint(*(extra for _, extra, _ in installed_packages())))]


def check_system(system: System) -> list[Diagnosis]:
    """Return an error if the packages are for another system, according to their wheel tags."""
    names = {tag_system: name for tag_system, name in SYSTEMS.items() if tag_system != system.platform}
    for dist, extra, _ in installed_packages():
        wheel_for = _system_of(dist) if extra == "core" else ""
        if wheel_for in names:
            here = SYSTEMS.get(system.platform, system.platform)
            return [Diagnosis(ERROR, f"{dist} is for {names[wheel_for]}, but this is {here}", HINT_FOR_OTHERS)]
    return []


def _system_of(dist: str) -> str:
    """Return the ``sys.platform`` value for a distribution's wheel tags, or an empty string."""
    try:
        text = find_distribution(dist).read_text("WHEEL") or ""
    except (PackageNotFoundError, OSError, ValueError):
        return ""
    tags = [line.rpartition("-")[2] for line in text.splitlines() if line.startswith("Tag:")]
    if any("linux" in tag for tag in tags):
        return "linux"
    return "win32" if any(tag.startswith("win") for tag in tags) else ""


def check_devel() -> list[Diagnosis]:
    """Return an error if the development files are installed but unusable. The check doesn't change any file."""
    try:
        place = find_place()
    except ModuleNotFoundError:
        return []
    if place.archive is not None:
        needed = (place.package / "__init__.py", place.package, place.site)
        locked = next((path for path in needed if not os.access(path, os.W_OK)), None)
        if locked is None:
            return []
        text = f"the development files are not expanded yet, and {locked} isn't writable: compilers and CMake fail"
        return [Diagnosis(ERROR, text, "As a user with write access, run: rocm-sdk init")]
    try:
        require_whole(place)
    except DevelError as e:
        return [Diagnosis(ERROR, str(e), "")]
    return _check_links(place)


def _check_links(place: DevelPlace) -> list[Diagnosis]:
    try:
        absent = absent_links(place)
    except OSError as e:
        return [Diagnosis(ERROR, f"links to files from device packages can't be checked: {e}", "")]
    if not absent:
        return []
    rest = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    text = f"{place.root} lacks links to files from device packages: {absent[0]}{rest}"
    return [Diagnosis(ERROR, text, "rocm-sdk init")]
