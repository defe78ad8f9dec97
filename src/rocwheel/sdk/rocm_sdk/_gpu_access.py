"""Finds reasons why a user can't access a machine's GPUs, such as drivers, devices, permissions, and containers.

This module doesn't run other programs.
"""

from __future__ import annotations

from typing import NamedTuple

from ._gpus import (
    CLINFO,
    NOT_OURS,
    TOPOLOGY,
    DetectionError,
    is_wsl,
    list_nodes,
    read_topology,
    replacing_variable,
    survey_gpus,
    system_program,
)
from ._output import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._gpus import Gpu
    from ._system import System

ERROR = "error"
WARNING = "warning"
NOTE = "note"

KFD = "/dev/kfd"
PCI = "/sys/bus/pci/devices"
PCI_CLASSES = ("0x03", "0x12")
"""The PCI device classes of display controllers and processing accelerators."""

WSL_DEVICE = "/dev/dxg"

CONTAINER_DEVICES = "Start the container with --device=/dev/kfd --device=/dev/dri."
ALLOTMENT = "Request GPUs when you start the job, for example, with the scheduler's --gpus option."
UDEV_RULES = (
    """printf '%s\\n' 'KERNEL=="kfd", GROUP="render", MODE="0660"' 'KERNEL=="renderD*", GROUP="render", MODE="0660"'"""
    " | sudo tee --append /etc/udev/rules.d/70-amdgpu.rules && sudo udevadm control --reload && sudo udevadm trigger"
)


class Diagnosis(NamedTuple):
    """A problem or a piece of useful information, with a remedy."""

    level: str
    """``error`` if the GPU is unusable, ``warning`` if it may not be the intended GPU, ``note`` otherwise."""

    text: str

    remedy: str
    """The remedy, which is a command if possible, or an empty string if there is nothing to do."""

    def __str__(self) -> str:
        """Return at most two lines. Line endings in names are escaped."""
        return f"{self.level}: {in_one_line(self.text)}" + (f"\n  {in_one_line(self.remedy)}" if self.remedy else "")


NONE_FOUND = Diagnosis(NOTE, "no AMD GPU was found", "")
MISSING = Diagnosis(ERROR, "a GPU is required, but none was found", "lspci -d 1002: lists AMD devices")
"""The diagnosis if a required GPU is absent."""

MISSING_ON_WINDOWS = MISSING._replace(remedy="clinfo.exe lists the GPUs that the graphics driver finds")


def survey_access(system: System, *, require_gpu: bool = False) -> tuple[list[Gpu], list[Diagnosis]]:
    """Return the GPUs, and diagnoses about access, invalid variables, and invalid files.

    With ``require_gpu``, a missing GPU is an error.
    """
    gpus, problems = survey_gpus(system)
    unclear = [Diagnosis(ERROR, str(problem), _remedy_of(system, problem)) for problem in problems]
    # Use the GPUs of the machine, regardless of variables. If they are unknown, use the GPUs that a variable sets.
    if not gpus or not replacing_variable(system) or system.platform == "win32" or is_wsl(system):
        present = gpus
    else:
        found, problems = read_topology(system)
        present = found or (gpus if problems else [])
    # If detection failed, any reason for missing GPUs would be a guess.
    access = _check_access(system, present, is_listed=bool(gpus)) if present or not unclear else []
    lack = MISSING_ON_WINDOWS if system.platform == "win32" else MISSING
    missing = [lack] if require_gpu and not present else []
    return gpus, [*unclear, *access, *missing]


def _remedy_of(system: System, problem: DetectionError) -> str:
    if problem.source == TOPOLOGY:
        return f"ls --directory -l {TOPOLOGY}"
    if problem.source.startswith(TOPOLOGY):
        return "dmesg | grep -i kfd"
    variable, is_set, _ = problem.source.partition("=")
    if system.platform != "win32":
        return f"unset {variable}"
    return f"Remove the variable {variable}" if is_set or variable.startswith("ROCM_") else "Update the graphics driver"


def _check_access(system: System, gpus: list[Gpu], *, is_listed: bool) -> list[Diagnosis]:
    """Return why this process can't use ``gpus``, or why the machine has no GPUs even if a variable lists GPUs."""
    if system.platform == "win32":
        return _check_windows(system, gpus, is_listed=is_listed)
    if system.platform != "linux":
        return [Diagnosis(NOTE, f"access to GPUs is only checked on Linux, but this is {system.platform}", "")]
    if not gpus and (variable := replacing_variable(system)):
        text = f"{NONE_FOUND.text} on this machine: {variable} sets the listed GPUs"
        return [Diagnosis(NOTE, text, "") if is_listed else NONE_FOUND, *_check_overrides(system, gpus)]
    hidden = _check_hidden(system)
    if not gpus:  # the driver shows the card, but hides its node from this process
        return [*hidden, NONE_FOUND] if hidden else _explain_absence(system)
    diagnoses = [
        diagnosis for path in dict.fromkeys(_device_paths(system, gpus)) for diagnosis in _check_device(system, path)
    ]
    return [*diagnoses, *hidden, *_check_overrides(system, gpus)]


def _check_windows(system: System, gpus: list[Gpu], *, is_listed: bool) -> list[Diagnosis]:
    """Return why there are no GPUs on Windows, where permissions aren't checked."""
    variable = replacing_variable(system)
    if variable:
        text = f"{variable}={system.variable(variable)} overrides the GPUs that the driver lists"
        return [*([] if is_listed else [NONE_FOUND]), Diagnosis(NOTE, text, f"Remove the variable {variable}")]
    if gpus:
        return []
    program = system_program(system, CLINFO)
    if system.output(program) is None:
        text = f"{NONE_FOUND.text}: {program}, a part of AMD's graphics driver, can't be run"
        return [Diagnosis(NOTE, text, "Install AMD Software: Adrenalin Edition")]
    return [Diagnosis(NOTE, f"{NONE_FOUND.text}: {program} lists no GPU", "")]


def _device_paths(system: System, gpus: list[Gpu]) -> list[str]:
    if is_wsl(system):
        return [WSL_DEVICE]
    return [KFD, *(f"/dev/dri/renderD{gpu.render_minor}" for gpu in gpus if gpu.render_minor)]


def _explain_absence(system: System) -> list[Diagnosis]:
    if is_wsl(system):
        text = "this is the Windows Subsystem for Linux, which doesn't show GPUs in sysfs"
        return [Diagnosis(NOTE, text, "export ROCM_SDK_TARGET_FAMILY=gfx... for the GPU that Windows has")]
    cards = []
    for name in system.list_names(PCI):
        vendor = (system.read_text(f"{PCI}/{name}/vendor") or "").strip()
        kind = (system.read_text(f"{PCI}/{name}/class") or "").strip()
        if vendor == "0x1002" and kind.startswith(PCI_CLASSES):
            cards.append(name)
    if not cards:
        text = f"{NONE_FOUND.text}: neither {TOPOLOGY} nor {PCI} shows one"
        return [Diagnosis(NOTE, text, CONTAINER_DEVICES if _is_container(system) else MISSING.remedy)]
    found = f"PCI shows {', '.join(cards)} from AMD, but there is no GPU in {TOPOLOGY}"
    if not system.exists("/sys/module/amdgpu"):
        return [Diagnosis(ERROR, f"{found}: the kernel driver is not loaded", "sudo modprobe amdgpu")]
    return [Diagnosis(ERROR, f"{found}: the kernel driver has no KFD node for it", "dmesg | grep -i kfd")]


def _check_hidden(system: System) -> list[Diagnosis]:
    try:
        listed = list_nodes(system)
    except DetectionError:  # a variable lists the GPUs instead
        return []
    nodes = [node for node in listed if system.refusal(f"{TOPOLOGY}/{node}/properties") in NOT_OURS]
    if not nodes:
        return []
    text = f"the kernel hides KFD node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))} from this process"
    return [Diagnosis(NOTE, text, CONTAINER_DEVICES if _is_container(system) else ALLOTMENT)]


def _check_overrides(system: System, gpus: list[Gpu]) -> list[Diagnosis]:
    name = replacing_variable(system)
    if name:
        text = f"{name}={system.variable(name)} overrides the GPUs that the kernel lists"
        return [Diagnosis(NOTE, text, f"unset {name}")]
    passing = {f"HSA_OVERRIDE_GFX_VERSION_{gpu.number}": f"the GPU of KFD node {gpu.node}" for gpu in gpus}
    return [
        Diagnosis(NOTE, f"{name}={system.variable(name)} makes {gpu} run code for that version", f"unset {name}")
        for name, gpu in {"HSA_OVERRIDE_GFX_VERSION": "every GPU", **passing}.items()
        if system.variable(name)
    ]


def _check_device(system: System, path: str) -> list[Diagnosis]:
    if not system.exists(path):
        return [Diagnosis(ERROR, f"{path} does not exist", _remedy_of_absence(system, path))]
    refusal = system.device_refusal(path)
    if not refusal:
        return []
    if refusal == "EACCES":
        return [_explain_permission(system, path)]
    remedy = CONTAINER_DEVICES if _is_container(system) else "dmesg | grep -i amdgpu"
    return [Diagnosis(ERROR, f"{path} can't be opened ({refusal})", remedy)]


def _remedy_of_absence(system: System, path: str) -> str:
    if path == WSL_DEVICE:
        return "In a container: --device=/dev/dxg. Otherwise, in Windows: wsl --update"
    return CONTAINER_DEVICES if _is_container(system) else "sudo modprobe amdgpu && sudo udevadm trigger"


def _explain_permission(system: System, path: str) -> Diagnosis:
    group, number = system.owner_group(path)
    found = f"{path} can't be opened by {system.user()}"
    if number == _overflow_group(system):
        return _explain_foreign_group(system, path, found)
    if number == 0:
        remedy = f"On the host: {UDEV_RULES}" if _is_container(system) else UDEV_RULES
        return Diagnosis(ERROR, f"{found}: only root has access", remedy)
    if system.has_group(number):
        return Diagnosis(ERROR, f"{found}, even though the process is in its group {group}", f"sudo chmod g+rw {path}")
    found += f", who is not in its group {group}"
    if _is_container(system):
        return Diagnosis(ERROR, found, f"Start the container with --group-add {number}.")
    if system.is_member(number):
        return Diagnosis(ERROR, f"{found} yet", f"Log out and in again, or: newgrp {group}")
    return Diagnosis(ERROR, found, f"sudo usermod --append --groups {group} {system.user()}, then log in again")


def _explain_foreign_group(system: System, path: str, found: str) -> Diagnosis:
    """Return why a device of an unmapped group can't be opened in a rootless container."""
    if system.has_group(_overflow_group(system)):
        text = f"{found}, even though the process has groups from the host"
        return Diagnosis(ERROR, text, f"On the host, add the user to the group that this command shows: ls -l {path}")
    return Diagnosis(
        ERROR, f"{found}, who has no group from the host", "Start the container with --group-add keep-groups."
    )


def _overflow_group(system: System) -> int:
    """Return the group number that represents all groups that this user namespace doesn't map."""
    text = (system.read_text("/proc/sys/kernel/overflowgid") or "").strip()
    return int(text) if text.isdecimal() else 65534


def _is_container(system: System) -> bool:
    marks = ("/.dockerenv", "/run/.containerenv")
    variables = ("container", "KUBERNETES_SERVICE_HOST")
    return any(map(system.exists, marks)) or any(map(system.variable, variables))
