"""Checks that the packages and other wheels have code for the visible GPUs."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from . import _build_info
from ._distributions import list_distributions
from ._gpu_access import ERROR, NOTE, WARNING, Diagnosis
from ._gpus import GENERIC_TARGETS, base_target, survey_gpus, visible_gpus
from ._installing import UNKNOWN_INDEX, installation_hint, with_source
from ._libraries import choose_device
from ._packages import SITE, find_root, installed_devices, installed_families, normalize_name
from ._select import CHOICE_VARIABLE, available_families, family_serving, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

    from ._gpus import Gpu
    from ._system import System


def check_device_code(system: System, gpus: list[Gpu]) -> list[Diagnosis]:
    """Return diagnoses about the device code for the GPUs' targets.

    Missing code is an error. For integrated GPUs, it is a warning, or a note if there is another GPU. Libraries that
    contain the code for all GPUs don't need a package for each GPU. Device packages may contain complete libraries
    while the common libraries still contain some code. In that case, a missing package is only a warning for GPUs that
    can run the common code.
    """
    if not _build_info.FAMILIES:
        return []
    visible = visible_gpus(system, gpus)
    levels = lack_levels(system, gpus)
    return [
        diagnosis for target, level in levels.items() for diagnosis in _check_target(system, visible, target, level)
    ]


def needs_device_code() -> bool:
    """Return whether the installed libraries need device code from packages for a family or target."""
    if _build_info.LAYOUT == "neutral":
        return "device" in _build_info.PACKAGES and find_root("libraries") is not None
    return bool(installed_families())


def lack_levels(system: System, gpus: list[Gpu]) -> dict[str, str]:
    """Return the severity of a diagnosis about missing code, keyed by the targets of the visible GPUs."""
    visible = visible_gpus(system, gpus)
    kinds: dict[str, bool] = {}
    for gpu in visible.values():  # a target counts as integrated only if all GPUs with that target are integrated
        target = base_target(gpu.target)
        kinds[target] = kinds.get(target, True) and gpu.integrated
    if_integrated = WARNING if all(kinds.values()) else NOTE
    return {target: if_integrated if integrated else ERROR for target, integrated in kinds.items()}


def _check_target(system: System, visible: dict[int, Gpu], target: str, level: str) -> list[Diagnosis]:
    gpu = target if level == ERROR else f"{target}, which is integrated"
    family = family_serving(target, system.platform)
    if family is None:
        available = ", ".join(available_families(system.platform)) or f"nothing for {system.platform}"
        text = f"ROCm {_build_info.VERSION} has no packages for {gpu} (available: {available})"
        return [Diagnosis(level, text, _way_around(system, visible))]
    if family in installed_families():
        return []
    logical, content = ("device", "kernels") if _build_info.LAYOUT == "neutral" else ("libraries", "libraries")
    text = f"the package with the {content} for {gpu} is not installed"
    if target in _build_info.COMMON_GPUS:
        text += ": the GPU can run only the code in the libraries for all GPUs, without kernel files"
        level = WARNING if level == ERROR else level
    return [Diagnosis(level, text, installation_hint(f"{logical}-{family}"))]


def _way_around(system: System, visible: dict[int, Gpu]) -> str:
    """Return the remedy for a GPU that this release doesn't support: using only the other GPUs."""
    served = {number: gpu.target for number, gpu in visible.items() if family_serving(gpu.target, system.platform)}
    if not served:
        return "To list other releases: pip index versions rocm"
    if survey_gpus(system)[1]:  # it is unknown whether the runtime counts a GPU that can't be identified
        targets = ", ".join(dict.fromkeys(served.values()))
        return f"Set HIP_VISIBLE_DEVICES to the numbers of {targets} in the output of rocminfo"
    return f"export HIP_VISIBLE_DEVICES={','.join(map(str, served))}"


def check_choice(system: System) -> list[Diagnosis]:
    """Return an error for a choice that this release doesn't offer, or that differs from the installed packages.

    Both pip and uv cache the wheel that they built for an earlier choice.
    """
    if not system.variable(CHOICE_VARIABLE) or not _build_info.FAMILIES:
        return []
    try:
        selection = select(system)
    except ValueError as e:
        return [Diagnosis(ERROR, str(e), f"unset {CHOICE_VARIABLE}")]
    if selection.reason == "environment" and not selection.families:  # only other platforms have this family
        return [Diagnosis(ERROR, selection.explanation, f"unset {CHOICE_VARIABLE}")]
    present = installed_families()
    if not needs_device_code() or set(selection.families) <= set(present):
        return []
    names = ", ".join(present) or "nothing"
    text = f"{selection.explanation}, but {SITE} has device code for {names}"
    extra = "device" if _build_info.LAYOUT == "neutral" else "libraries"
    name = f"{_build_info.PACKAGES['meta']['dist']}[{extra}]=={_build_info.VERSION}"
    return [Diagnosis(ERROR, text, with_source(f'pip install --no-cache-dir --force-reinstall "{name}"'))]


def check_libraries(system: System) -> list[Diagnosis]:
    """Return a warning for each GPU target whose installed package isn't used in a process that sees all GPUs.

    For integrated GPUs, return a note. Another check reports GPUs without a package.
    """
    if not _build_info.OVERLAID:
        return []
    choice, installed = choose_device(system), installed_devices()
    levels: dict[str, str] = {}
    for gpu in choice.left_out:
        if family_serving(gpu.target, system.platform) in installed:
            target, level = base_target(gpu.target), NOTE if gpu.integrated else WARNING
            levels[target] = WARNING if WARNING in (levels.get(target), level) else NOTE
    used = f"the libraries for {choice.device}" if choice.device else "the libraries for all GPUs"
    hiding = "export ROCR_VISIBLE_DEVICES=NUMBERS"
    remedy = f"Run a separate process for each kind of GPU, and hide the other kinds from it: {hiding}"
    return [
        Diagnosis(level, f"a process that sees all GPUs uses {used}, which have no code for {target}", remedy)
        for target, level in levels.items()
    ]


REQUIREMENT = re.compile(r"Requires-Dist:\s*(?P<name>[\w.-]+)(?:\s*\(?==\s*(?P<version>[^\s;,)]+))?", re.IGNORECASE)

TARGET = re.compile(r"\bextra\s*==\s*[\"']device-(gfx[0-9a-z_-]+)[\"']", re.IGNORECASE)

NAME = re.compile("[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE | re.ASCII)

VERSION = re.compile("[a-z0-9.+!_-]+", re.IGNORECASE | re.ASCII)
"""Matches names and versions that contain no special characters, so that they are safe in shell commands."""


class HostWheel(NamedTuple):
    """An installed wheel with separate device wheels, and the names and versions of those wheels for each target.

    Such a wheel, for example the wheel of a framework, has an extra ``device-TARGET`` for each target. Its libraries
    refer to archives in the device wheel.
    """

    name: str
    version: str
    wheels: dict[str, list[tuple[str, str]]]


def check_host_wheels(system: System, gpus: list[Gpu]) -> list[Diagnosis]:
    """Return diagnoses about missing, mismatched, or damaged device wheels for the targets of the GPUs."""
    levels = lack_levels(system, gpus)
    if not levels:
        return []
    # The distributions, keyed by name. If ``sys.path`` has several copies, Python imports the first one.
    installed: dict[str, Distribution] = {}
    for one in list_distributions():
        name = _field(one, "name")
        if NAME.fullmatch(name) and VERSION.fullmatch(_field(one, "version")):
            installed.setdefault(normalize_name(name), one)
    own = {normalize_name(names["dist"]) for names in _build_info.PACKAGES.values()}
    hosts = [_read_host(one) for key, one in sorted(installed.items()) if key not in own]
    pairs = [(host, target) for host in hosts if host.wheels for target in levels]
    return [found for host, target in pairs for found in _check_host(host, target, levels[target], installed)]


def _check_host(host: HostWheel, target: str, level: str, installed: dict[str, Distribution]) -> Iterator[Diagnosis]:
    generics = [generic for generic, members in GENERIC_TARGETS.items() if target in members.split()]
    served = [one for one in (target, *generics) if one in host.wheels]
    if not served:
        offered = ", ".join(host.wheels)
        text = f"{host.name} {host.version} has no device wheel for {target}, only for {offered}"
        yield Diagnosis(WARNING if level == ERROR else level, text, "")
        return
    faults = [list(_faults(host, one, installed)) for one in served]
    if not all(faults):
        return
    command = f'pip install "{host.name}[device-{served[0]}]=={host.version}"'
    for text, option in faults[0]:
        yield Diagnosis(
            level, f"{host.name} finds no device code for {target}: {text}", f"{command}{option} {UNKNOWN_INDEX}"
        )


def _faults(host: HostWheel, target: str, installed: dict[str, Distribution]) -> Iterator[tuple[str, str]]:
    """Yield problems with the device wheels for a target, each with the options for the repair command."""
    for name, version in host.wheels[target]:
        one = installed.get(normalize_name(name))
        if one is None:
            yield f"{name} is not installed", ""
        elif version and (found := _field(one, "version")) != version:
            yield f"{name} has version {found}, but {host.name} has version {host.version}", ""
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
    return HostWheel(_field(one, "name"), _field(one, "version"), wheels)


def _field(one: Distribution, field: str) -> str:
    values = (line.partition(":") for line in _header(one))
    return next((value.strip() for key, _, value in values if key.lower() == field), "")


def _header(one: Distribution) -> list[str]:
    """Return the lines that precede the description in METADATA, or an empty list if the file can't be read."""
    with suppress(OSError, ValueError):
        return (one.read_text("METADATA") or "").replace("\r\n", "\n").partition("\n\n")[0].split("\n")
    return []
