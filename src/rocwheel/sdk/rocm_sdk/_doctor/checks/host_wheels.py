"""Checks that wheels whose device code is in wheels of their own have those for the GPUs that programs see.

Such a host wheel, a framework's or another's, has an extra ``device-TARGET`` for each target: its libraries lead to
archives that the wheel of the target brings.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ... import _build_info
from ..._distributions import list_distributions
from ..._gpus.access import ERROR, WARNING, Diagnosis
from ..._gpus.generic import GENERIC_TARGETS
from ..._installing import UNKNOWN_INDEX
from .device_code import lack_levels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

    from ..._gpus.system import System
    from ..._gpus.topology import Gpu

__all__ = ["check_host_wheels"]

REQUIREMENT = re.compile(r"Requires-Dist:\s*(?P<name>[\w.-]+)(?:\s*\(?==\s*(?P<version>[^\s;,)]+))?", re.IGNORECASE)
TARGET = re.compile(r"\bextra\s*==\s*[\"']device-(gfx[0-9a-z_-]+)[\"']", re.IGNORECASE)


NAME = re.compile("[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE | re.ASCII)
VERSION = re.compile("[a-z0-9.+!_-]+", re.IGNORECASE | re.ASCII)
"""What names and versions are made of: commands to be pasted into a shell have no others in them."""


class HostWheel(NamedTuple):
    """An installed host wheel, and names and versions of the device wheels that each target needs."""

    name: str
    version: str
    wheels: dict[str, list[tuple[str, str]]]


def check_host_wheels(system: System, gpus: list[Gpu]) -> list[Diagnosis]:
    """Return which device wheels are not installed, of another version or damaged, for the targets among the GPUs."""
    levels = lack_levels(system, gpus)
    if not levels:
        return []
    installed = _installed()
    own = {_normalize(names["dist"]) for names in _build_info.PACKAGES.values()}
    hosts = [_read_host(one) for key, one in sorted(installed.items()) if key not in own]
    return [
        diagnosis
        for host in hosts
        if host.wheels
        for target, level in levels.items()
        for diagnosis in _check(host, target, level, installed)
    ]


def _installed() -> dict[str, Distribution]:
    """Return distributions by their names; of several copies on ``sys.path`` the first, which Python imports."""
    found: dict[str, Distribution] = {}
    for one in filter(_is_proper, list_distributions()):
        found.setdefault(_normalize(_name(one)), one)
    return found


def _check(host: HostWheel, target: str, level: str, installed: dict[str, Distribution]) -> Iterator[Diagnosis]:
    generics = [generic for generic, members in GENERIC_TARGETS.items() if target in members.split()]
    served = [one for one in (target, *generics) if one in host.wheels]
    if not served:
        offered = ", ".join(host.wheels)
        text = f"{host.name} {host.version} has no device wheel for {target}; it has those for {offered}"
        yield Diagnosis(WARNING if level == ERROR else level, text, "")
        return
    faults = [list(_faults(host, one, installed)) for one in served]
    if not all(faults):
        return
    command = f'pip install "{host.name}[device-{served[0]}]=={host.version}"'
    for text, option in faults[0]:
        yield Diagnosis(level, f"{host.name} finds no device code for {target}: {text}", _from(command + option))


def _faults(host: HostWheel, target: str, installed: dict[str, Distribution]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the device wheels for a target, and what is to be added to the command that mends it."""
    for name, version in host.wheels[target]:
        one = installed.get(_normalize(name))
        if one is None:
            yield f"{name} is not installed", ""
        elif version and _version(one) != version:
            yield f"{name} is of version {_version(one)}, and {host.name} of {host.version}", ""
        elif absent := _absent(one):
            yield f"{name} lacks {absent[0]}", " --force-reinstall --no-deps"


def _absent(one: Distribution) -> list[str]:
    paths = {str(file): str(one.locate_file(file)) for file in one.files or ()}
    return [name for name, path in paths.items() if not Path(path).exists()]


def _read_host(one: Distribution) -> HostWheel:
    wheels: dict[str, list[tuple[str, str]]] = {}
    for line in _header(one):
        requirement, _, marker = line.partition(";")
        targets = TARGET.findall(marker)
        if targets and (match := REQUIREMENT.match(requirement)):
            wheels.setdefault(targets[-1].lower(), []).append((match["name"], match["version"] or ""))
    return HostWheel(_name(one), _version(one), wheels)


def _header(one: Distribution) -> list[str]:
    """Return the lines of METADATA before the description; none when it can't be read."""
    with suppress(OSError, ValueError):
        return (one.read_text("METADATA") or "").replace("\r\n", "\n").partition("\n\n")[0].split("\n")
    return []


def _field(one: Distribution, field: str) -> str:
    values = (line.partition(":") for line in _header(one))
    return next((value.strip() for key, _, value in values if key.lower() == field), "")


def _is_proper(one: Distribution) -> bool:
    return bool(NAME.fullmatch(_name(one)) and VERSION.fullmatch(_version(one)))


def _name(one: Distribution) -> str:
    return _field(one, "name")


def _version(one: Distribution) -> str:
    return _field(one, "version")


def _from(command: str) -> str:
    return f"{command} {UNKNOWN_INDEX}"


def _normalize(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()
