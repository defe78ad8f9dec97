"""The platform, and where needed the machine, that packages are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.markers import Marker

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Place", "find_places", "marker_of"]


class Place(msgspec.Struct, frozen=True, order=True):
    """What an installer tells apart by markers (:pep:`508`)."""

    platform: str
    """The value of ``sys_platform``."""
    machine: str = ""
    """The value of ``platform_machine``; empty where all builds of the platform are for one."""

    @property
    def key(self) -> str:
        """What it is called in ``BY_PLATFORM`` (``src/rocwheel/sdk/README.md``)."""
        return f"{self.platform} {self.machine}".strip()

    @property
    def marker(self) -> str:
        """The marker that holds there alone."""
        machine = f" and platform_machine == '{self.machine}'" if self.machine else ""
        return f"sys_platform == '{self.platform}'{machine}"

    def meets(self, marker: str) -> bool:
        """Return whether a marker about these two values alone holds; an empty one does."""
        environment = {"sys_platform": self.platform, "platform_machine": self.machine}
        return not marker or Marker(marker).evaluate(environment)


def find_places(builds: Iterable[Mapping[str, Iterable[str]]]) -> list[Place]:
    """Return all places that builds are for, sorted; each build gives the machines of its platforms, if it knows them.

    Machines are told apart only where a platform has several.
    """
    machines: dict[str, set[str]] = {}
    for build in builds:
        for platform, known in build.items():
            machines.setdefault(platform, set()).update(known)
    return [
        Place(platform, machine)
        for platform, known in sorted(machines.items())
        for machine in (sorted(known) if len(known) > 1 else [""])
    ]


def marker_of(places: Collection[Place], among: Collection[Place]) -> str:
    """Return the marker that holds at some ``among`` all places; empty for all."""
    if set(places) == set(among):
        return ""
    parts = []
    for platform in sorted({place.platform for place in places}):
        here = {place for place in places if place.platform == platform}
        is_whole = here == {place for place in among if place.platform == platform}
        parts += [Place(platform).marker] if is_whole else [place.marker for place in sorted(here)]
    return " or ".join(parts)
