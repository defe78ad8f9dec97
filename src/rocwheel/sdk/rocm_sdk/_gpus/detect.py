"""Finds the GPUs of a machine: those that variables list, else those of the KFD topology.

It runs no other program, but on Windows, where the driver's clinfo says which GPUs there are.
"""

from __future__ import annotations

import re

from .gfx_version import DetectionError
from .hsa_override import read_override
from .topology import INTEGRATED, Gpu, read_topology
from .windows import find_targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .system import System

__all__ = ["base_target", "detect_gpus", "is_wsl", "replacing_variable", "survey_gpus"]

TARGET = re.compile(r"gfx[0-9a-f]+(-[0-9a-z]+)*(:(?P<first>sramecc|xnack)[+-](:(?!(?P=first))(sramecc|xnack)[+-])?)?")
"""A target id: processor, then features, each once, as in LLVM's AMDGPUUsage."""


def detect_gpus(system: System) -> list[Gpu]:
    """Return the GPUs in the order of their nodes, as `survey_gpus` finds them.

    Raises `DetectionError` when there is none, but something can't be understood.
    """
    gpus, problems = survey_gpus(system)
    if problems and not gpus:
        raise problems[0]
    return gpus


def survey_gpus(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    """Return the GPUs in the order of their nodes, and the variables and files that can't be understood.

    The GPUs come from the first of these that applies:

    1. ``ROCM_BOOTSTRAP_DISABLE_DETECTION=1``: none.
    2. ``ROCM_BOOTSTRAP_FORCE_GFX_ARCH``: the targets it lists, separated by commas.
    3. ``ROCM_TARGET_LST``: the targets in the file it names, one at the start of each line (``gfx000`` is the CPU).
    4. On Windows what the driver's clinfo lists, else hipInfo of the HIP SDK that ``HIP_PATH`` names.
    5. The KFD topology, with ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<number>``) in place of a node's version.
    6. In the Windows Subsystem for Linux, which has no topology, that variable alone.

    Nodes that a container hides are left out, as the runtime leaves them out.
    """
    try:
        listed = _read_list(system)
    except DetectionError as e:
        return [], [e]
    if listed is not None:
        return listed, []
    if system.platform == "win32":
        return _read_windows(system)
    gpus, problems = read_topology(system)
    if not gpus and not problems and is_wsl(system):
        return _read_subsystem(system)
    return gpus, problems


def replacing_variable(system: System) -> str:
    """Return the name of the variable that replaces the topology, empty when none does."""
    if system.variable("ROCM_BOOTSTRAP_DISABLE_DETECTION") == "1":
        return "ROCM_BOOTSTRAP_DISABLE_DETECTION"
    names = ("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", "ROCM_TARGET_LST")
    return next((name for name in names if system.variable(name)), "")


def is_wsl(system: System) -> bool:
    """Return whether this is the Windows Subsystem for Linux, which has no KFD and shows no GPU in sysfs."""
    return system.exists("/dev/dxg") or "microsoft" in (system.read_text("/proc/sys/kernel/osrelease") or "").lower()


def base_target(target: str) -> str:
    """Return a target id without its features: ``gfx90a`` for ``gfx90a:xnack-``."""
    return target.partition(":")[0]


def _read_list(system: System) -> list[Gpu] | None:
    """Return the GPUs that a variable lists, None when the topology has to be read."""
    name = replacing_variable(system)
    value = system.variable(name)
    if name == "ROCM_BOOTSTRAP_FORCE_GFX_ARCH":
        return _number(name, value.split(","))
    if name == "ROCM_TARGET_LST":
        return _read_target_list(system, value)
    return [] if name else None


def _read_windows(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    source = find_targets(system)
    try:
        return _number(source.program, source.targets), []
    except DetectionError as e:
        return [], [e]


def _read_subsystem(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    try:
        target = read_override(system, 0)
    except DetectionError as e:
        return [], [e]
    return [_describe(0, target)] if target else [], []


def _number(source: str, names: list[str]) -> list[Gpu]:
    targets = [name.strip() for name in names if name.strip()]
    for target in targets:
        if not TARGET.fullmatch(target):
            found = f"{target!r} is not a GPU target; expected names such as gfx90a or gfx90a:xnack-"
            raise DetectionError(source, found)
    return [_describe(number, target) for number, target in enumerate(targets)]


def _describe(number: int, target: str) -> Gpu:
    """Return a GPU of which only the target is known."""
    return Gpu(number, target, integrated=INTEGRATED.fullmatch(base_target(target)) is not None)


def _read_target_list(system: System, path: str) -> list[Gpu]:
    source = f"ROCM_TARGET_LST={path}"
    # A relative path starts from the working directory, as for rocm_agent_enumerator.
    text = system.read_given(path)
    if text is None:
        raise DetectionError(source, "the file can't be read; correct the variable or unset it")
    # Like rocm_agent_enumerator: all other lines are comments, such as names with a character before them.
    named = [line.split()[0] for line in text.splitlines() if line.startswith("gfx")]
    if not named:
        raise DetectionError(source, "no line begins with a GPU target, such as gfx90a, or gfx000 for none")
    return [gpu for gpu in _number(source, named) if gpu.target != "gfx000"]
