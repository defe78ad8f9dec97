"""Whether the installed packages fit each other: one version, and development files that are or can be expanded."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from . import _build_info
from ._access import ERROR, Finding
from ._devel import require_whole
from ._packages import installation_hint, installed_devices
from ._place import DevelError, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._place import DevelPlace

__all__ = ["check_devel", "check_versions", "deviating_versions"]


def deviating_versions() -> dict[str, str]:
    """Return the installed distributions of the set that are of another version than this one, with theirs."""
    found = {dist: text for dist, _, text in _installed()}
    return {dist: text for dist, text in found.items() if _release(text) != _release(_build_info.VERSION)}


def check_versions() -> list[Finding]:
    """Tell of packages of different releases: they link to files and symbols that the others lack."""
    deviating = deviating_versions()
    if not deviating:
        return []
    listed = ", ".join(f"{dist} of {text}" for dist, text in deviating.items())
    text = f"{_build_info.PACKAGES['meta']['dist']} is of version {_build_info.VERSION}, and {listed}"
    return [Finding(ERROR, text, installation_hint(*(extra for _, extra, _ in _installed())))]


def check_devel() -> list[Finding]:
    """Tell when the development files are installed and can't be used. Changes nothing."""
    try:
        place = find_place()
    except ModuleNotFoundError:
        return []
    if place.archive is None:
        try:
            require_whole(place)
        except DevelError as e:
            return [Finding(ERROR, str(e), "")]
        return []
    return _check_expandable(place)


def _check_expandable(place: DevelPlace) -> list[Finding]:
    needed = (place.package / "__init__.py", place.package, place.site)
    locked = next((path for path in needed if not os.access(path, os.W_OK)), None)
    if locked is None:
        return []
    text = f"the development files are not expanded yet, and {locked} cannot be written: compilers and CMake fail"
    return [Finding(ERROR, text, "As a user who may write there: rocm-sdk init")]


def _installed() -> list[tuple[str, str, str]]:
    """Return name, extra (or package that is always there) and version of each installed distribution of the set."""
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
    try:
        return version(dist)
    except PackageNotFoundError:
        return ""


def _release(text: str) -> str:
    """Return a version without the part that says that the same files were packed again."""
    return text.split(".post", maxsplit=1)[0]
