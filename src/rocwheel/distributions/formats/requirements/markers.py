"""Markers of requirements (:pep:`508`), judged for every Python and platform that a wheel's tags name (:pep:`425`)."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from rocwheel.distributions.formats.platforms.tags import parse_platforms
from rocwheel.distributions.variants.label import without_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.tags import Tag

__all__ = ["ALL_PLACES", "Place", "marker_holds", "marker_holds_at", "platforms_of_tag", "tag_minors"]

_WINDOWS_MACHINES = {"amd64": "AMD64", "arm64": "ARM64"}
_MINORS = range(8, 16)
"""The minor versions of Python 3 that a wheel for any Python is judged for."""
_MACHINES = ("x86_64", "aarch64", "ppc64le", "riscv64")
_PLATFORMS = (*(("linux", machine) for machine in _MACHINES), ("win32", "AMD64"), ("darwin", "arm64"))
Place = tuple[int, tuple[str, str]]
"""A minor version of Python 3, and the values of ``sys_platform`` and ``platform_machine``."""
ALL_PLACES: tuple[Place, ...] = tuple(product(_MINORS, _PLATFORMS))
"""Those that a wheel for any Python and platform is judged for."""
_NAMES = {"linux": ("Linux", "posix"), "win32": ("Windows", "nt"), "darwin": ("Darwin", "posix")}


@cache
def marker_holds(marker: str, extra: str, filename: str) -> bool:
    """Return whether ``marker`` holds, with ``extra``, for some Python and platform that the file ``filename`` is for.

    A file name that is not a wheel's names neither: every known Python and platform counts then. The Python that runs
    this does not matter.
    """
    return marker_holds_at(marker, extra, _places(PurePath(filename).name))


def marker_holds_at(marker: str, extra: str, places: Iterable[Place]) -> bool:
    """Return whether ``marker`` holds, with ``extra``, in one of the places."""
    parsed = Marker(marker)
    return any(parsed.evaluate({**_environment(minor, *platform), "extra": extra}) for minor, platform in places)


@cache
def _places(filename: str) -> tuple[Place, ...]:
    try:
        tags = parse_wheel_filename(without_label(filename))[3]
    except InvalidWheelFilename:
        return ALL_PLACES
    places = {place for tag in tags for place in product(tag_minors(tag), platforms_of_tag(tag.platform))}
    return tuple(sorted(places))


def tag_minors(tag: Tag) -> tuple[int, ...]:
    """Return the minor versions of Python 3 that a tag is for; all where it doesn't name one."""
    match = re.fullmatch(r"(?:cp|py)3(\d+)", tag.interpreter)
    if match is None:
        return tuple(_MINORS)
    minor = int(match[1])
    only = tag.interpreter.startswith("cp") and tag.abi != "abi3"
    return (minor,) if only else tuple(sorted({minor, *(later for later in _MINORS if later > minor)}))


def platforms_of_tag(tag: str) -> tuple[tuple[str, str], ...]:
    """Return the values of ``sys_platform`` and ``platform_machine`` that one platform tag is for.

    All known ones where the tag is for any, or is not known.
    """
    (platform,) = parse_platforms(tag)
    if platform.is_linux:
        return (("linux", platform.machine),)
    if platform.system == "macos":
        return tuple(("darwin", machine) for machine in ("arm64", "x86_64"))
    if platform.system == "windows":
        return (("win32", _WINDOWS_MACHINES.get(platform.machine, platform.machine)),)
    return _PLATFORMS


def _environment(minor: int, platform: str, machine: str) -> dict[str, str]:
    system, os_name = _NAMES[platform]
    return {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.0",
        "implementation_version": f"3.{minor}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": platform,
        "platform_system": system,
        "platform_machine": machine,
        "os_name": os_name,
    }
