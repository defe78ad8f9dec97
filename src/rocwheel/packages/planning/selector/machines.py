"""The platforms and machines that a package set is for, as markers of requirements spell them (:pep:`508`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.formats.platforms.platform_floor import host_machines
from rocwheel.distributions.formats.platforms.tags import parse_platforms
from rocwheel.distributions.formats.requirements.markers import platforms_of_tag

if TYPE_CHECKING:
    from rocwheel.packages.planning.basis import PlanBasis

__all__ = ["find_machines"]

_UNKNOWN: dict[str, list[str]] = {"linux": []}
_KNOWN = ("glibc", "musl", "windows", "macos")


def find_machines(basis: PlanBasis) -> dict[str, list[str]]:
    """Return the values of ``platform_machine`` by those of ``sys_platform``, from the tag that the wheels get.

    Where that names no machine, the set is for Linux, whose machines nobody has said.
    """
    machine = basis.facts.machine
    tags = basis.options.platform_tag or (basis.any_tag if machine in host_machines() else "any")
    parsed = parse_platforms(tags)
    if any(tag.system not in _KNOWN for tag in parsed):
        return _UNKNOWN
    places = {place for tag in parsed for place in platforms_of_tag(tag.text)}
    return {platform: sorted(m for p, m in places if p == platform) for platform in sorted({p for p, _ in places})}
