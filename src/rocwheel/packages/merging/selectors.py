"""A selector: what it says, and for which platforms and machines."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.decoding import convert_value
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.packages.merging.places import Place

__all__ = ["Selector", "find_problem"]


class _Family(msgspec.Struct, frozen=True):
    targets: list[str]
    platforms: list[str]


_REQUIRED: dict[str, Any] = {
    "VERSION": str,
    "LAYOUT": str,
    "DEFAULT_FAMILY": str,
    "FAMILIES": dict[str, _Family],
    "PACKAGES": dict[str, dict[str, str]],
    "LIBRARIES": dict[str, dict[str, Any]],
    "UNLOADABLE": list[str],
    "REQUIRES": list[str],
    "EXTRAS": dict[str, list[tuple[str, str]]],
    "SELECTED": dict[str, str],
}
"""What every selector says (``src/rocwheel/sdk/README.md``), by its kind."""
_KINDS: dict[str, Any] = {
    **_REQUIRED,
    "OVERLAID": dict[str, list[str]],
    "COMMON_GPUS": list[str],
    "PLATFORMS": list[str],
    "MACHINES": dict[str, list[str]],
    "BY_PLATFORM": dict[str, dict[str, Any]],
}
_NAME = re.compile(r"\w+", re.ASCII)
_ONE_PLACE = r"sys_platform == '\w+'(?: and platform_machine == '\w+')?"
_OF_PLATFORM = re.compile(rf"{_ONE_PLACE}(?: or {_ONE_PLACE})*", re.ASCII)
"""Markers that mean the same wherever they are judged."""


class Selector(msgspec.Struct, frozen=True):
    """A selector's sdist, written or planned."""

    path: Path
    """What it was read from: the sdist, or the plan."""
    name: str
    version: str
    files: dict[str, bytes]
    """By their paths below its top folder."""
    place: str
    """The one of its `_build_info.py` among them."""
    info: dict[str, Any]
    """The literals there."""

    @property
    def digest(self) -> str:
        """The SHA-256 of its files and their paths, however they are packed."""
        rows = (f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in sorted(self.files.items()))
        return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def platforms(self) -> tuple[str, ...]:
        """The values of ``sys_platform`` that it is for, sorted."""
        of_families = {name for row in self.info["FAMILIES"].values() for name in row["platforms"]}
        return tuple(sorted(self.info.get("PLATFORMS") or of_families))

    @property
    def machines(self) -> dict[str, tuple[str, ...]]:
        """The values of ``platform_machine`` by platform; none where it does not say."""
        known = self.info.get("MACHINES", {})
        return {platform: tuple(known.get(platform, ())) for platform in self.platforms}

    def serves(self, place: Place) -> bool:
        """Return whether it is for a place; one that names no machine of the platform is for all."""
        machines = self.machines.get(place.platform)
        return machines is not None and (not place.machine or not machines or place.machine in machines)

    def on(self, place: Place, name: str) -> Any:
        """Return a literal as it holds in one of the places."""
        by_platform = self.info.get("BY_PLATFORM", {})
        for facts in (by_platform.get(place.key, {}), by_platform.get(place.platform, {})):
            if name in facts:
                return facts[name]
        return self.info.get(name)


def find_problem(selector: Selector) -> InputError | None:
    """Return what is wrong with the literals of a selector, none if nothing is."""
    found = next(_faults(selector.info), "") or ("" if selector.platforms else "does not say which platform it is for")
    source, remedy = f"{selector.path}!{selector.place}", "Build the packages again."
    return InputError(source, shortened(found), remedy=remedy) if found else None


def _faults(info: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong; each check comes after those that it relies on."""
    yield from _faults_of_kind({**dict.fromkeys(_REQUIRED), **info})
    for facts in info.get("BY_PLATFORM", {}).values():
        yield from _faults_of_kind(facts)
    markers = (marker for rows in info["EXTRAS"].values() for _, marker in rows if marker)
    yield from (f"its EXTRAS have the marker {marker!r}" for marker in markers if not _OF_PLATFORM.fullmatch(marker))
    families = (name for row in info["FAMILIES"].values() for name in row["platforms"])
    platforms = {*families, *info.get("PLATFORMS", ()), *info.get("MACHINES", ())}
    machines = {machine for known in info.get("MACHINES", {}).values() for machine in known}
    names = sorted({*platforms, *machines})
    yield from (f"it names the platform or machine {name!r}" for name in names if not _NAME.fullmatch(name))


def _faults_of_kind(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in _KINDS.items():
        if name in facts:
            yield from _fault(name, facts[name], kind)


def _fault(name: str, value: Any, kind: type) -> Iterator[str]:
    try:
        convert_value(value, kind)
    except msgspec.ValidationError as e:
        yield f"its {name} can't be read ({e})"
