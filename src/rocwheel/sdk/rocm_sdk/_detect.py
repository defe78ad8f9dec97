"""Finds the GPUs of a machine in the KFD topology of sysfs; runs no other program.

Layout of the topology: https://www.kernel.org/doc/html/latest/gpu/amdgpu/index.html and libhsakmt's ``topology.c``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._system import System

__all__ = ["Gpu", "base_target", "detect_gpus", "target_name"]

TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
"""Folder with one numbered folder a node, CPUs included."""

TARGET = re.compile(r"gfx[0-9a-z-]+(:[a-z]+[+-])*")
"""A target id: processor, then features, as in LLVM's AMDGPUUsage."""


class Gpu(NamedTuple):
    """One GPU."""

    node: int
    """Number of its KFD node, or its position in a list that replaces detection."""

    target: str
    """Target id of the code it runs, such as ``gfx90a``; with features only if an override names them."""

    device_id: int = 0
    """PCI device id, 0 when not known."""


def detect_gpus(system: System) -> list[Gpu]:
    """Return the GPUs in the order of their nodes.

    In order of precedence:

    1. ``ROCM_BOOTSTRAP_DISABLE_DETECTION=1``: none.
    2. ``ROCM_BOOTSTRAP_FORCE_GFX_ARCH``: the targets it lists, separated by commas.
    3. ``ROCM_TARGET_LST``: the targets in the file it names, one a line (``gfx000`` is the CPU).
    4. The KFD topology, with ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<node>``) in place of what a node tells.

    Raises `ValueError` when one of the variables can't be understood.
    """
    if system.variable("ROCM_BOOTSTRAP_DISABLE_DETECTION") == "1":
        return []
    forced = system.variable("ROCM_BOOTSTRAP_FORCE_GFX_ARCH")
    if forced:
        return _number("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", forced.split(","))
    list_file = system.variable("ROCM_TARGET_LST")
    if list_file:
        return _read_target_list(system, list_file)
    nodes = sorted(int(name) for name in system.list_names(TOPOLOGY) if name.isdigit())
    return [gpu for node in nodes for gpu in _read_node(system, node)]


def target_name(gfx_target_version: int) -> str:
    """Return the target of KFD's number: major * 10000 + minor * 100 + stepping, so 90010 is ``gfx90a``."""
    major, rest = divmod(gfx_target_version, 10000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}"


def base_target(target: str) -> str:
    """Return a target id without its features: ``gfx90a`` for ``gfx90a:xnack-``."""
    return target.partition(":")[0]


def _number(source: str, names: list[str]) -> list[Gpu]:
    targets = [name.strip() for name in names if name.strip()]
    for target in targets:
        if not TARGET.fullmatch(target):
            msg = f"{source}: {target!r} is no GPU target; expected names such as gfx90a or gfx90a:xnack-"
            raise ValueError(msg)
    return [Gpu(number, target) for number, target in enumerate(targets)]


def _read_target_list(system: System, path: str) -> list[Gpu]:
    text = system.read_text(path)
    if text is None:
        msg = f"ROCM_TARGET_LST={path}: the file cannot be read; correct the variable or unset it"
        raise ValueError(msg)
    return [gpu for gpu in _number(f"ROCM_TARGET_LST={path}", text.split()) if gpu.target != "gfx000"]


def _read_node(system: System, node: int) -> list[Gpu]:
    properties = _parse_properties(system.read_text(f"{TOPOLOGY}/{node}/properties") or "")
    version = properties.get("gfx_target_version", 0)
    if not version:
        return []
    target = _read_override(system, node) or target_name(version)
    return [Gpu(node, target, properties.get("device_id", 0))]


def _parse_properties(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read_override(system: System, node: int) -> str:
    name = f"HSA_OVERRIDE_GFX_VERSION_{node}"
    value = system.variable(name)
    if not value:
        name = "HSA_OVERRIDE_GFX_VERSION"
        value = system.variable(name)
    if not value:
        return ""
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", value)
    if not match:
        msg = f"{name}={value}: expected major.minor.stepping, such as 10.3.0"
        raise ValueError(msg)
    major, minor, stepping = map(int, match.groups())
    return target_name(major * 10000 + minor * 100 + stepping)
