"""Finds the GPUs of a machine in the KFD topology of sysfs; runs no other program.

Layout of the topology: https://www.kernel.org/doc/html/latest/gpu/amdgpu/index.html and libhsakmt's ``topology.c``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._system import System

__all__ = ["DetectionError", "Gpu", "base_target", "detect_gpus", "is_wsl", "list_nodes", "target_name"]

TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
"""Folder with one numbered folder a node, CPUs included."""

PROPERTIES = ("simd_count", "cpu_cores_count", "gfx_target_version", "device_id", "drm_render_minor")

NOT_OURS = ("EPERM", "EACCES")
"""What the kernel answers for a node whose device a container was not given."""

TARGET = re.compile(r"gfx[0-9a-z-]+(:[a-z]+[+-])*")
"""A target id: processor, then features, as in LLVM's AMDGPUUsage."""


class DetectionError(ValueError):
    """A variable or a file of the topology that can't be understood: which one, and what is wrong with it."""

    def __init__(self, source: str, found: str) -> None:
        self.source = source
        self.found = found
        super().__init__(f"{source}: {found}")


class Gpu(NamedTuple):
    """One GPU."""

    node: int
    """Number of its KFD node, or its position in a list that replaces detection."""

    target: str
    """Target id of the code it runs, such as ``gfx90a``; with features only if an override names them."""

    device_id: int = 0
    """PCI device id, 0 when not known."""

    render_minor: int = 0
    """Minor number of its render node: 128 is ``/dev/dri/renderD128``. 0 when not known."""

    integrated: bool = False
    """Whether the node is that of a processor's CPU cores too."""


def detect_gpus(system: System) -> list[Gpu]:
    """Return the GPUs in the order of their nodes.

    In order of precedence:

    1. ``ROCM_BOOTSTRAP_DISABLE_DETECTION=1``: none.
    2. ``ROCM_BOOTSTRAP_FORCE_GFX_ARCH``: the targets it lists, separated by commas.
    3. ``ROCM_TARGET_LST``: the targets in the file it names, one a line (``gfx000`` is the CPU).
    4. The KFD topology, with ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<node>``) in place of what a node tells.
    5. In the Windows Subsystem for Linux, which has no topology, that variable alone.

    Nodes that a container hides are left out, as the runtime leaves them out. Raises `DetectionError` when one of
    the variables or the topology can't be understood.
    """
    if system.variable("ROCM_BOOTSTRAP_DISABLE_DETECTION") == "1":
        return []
    forced = system.variable("ROCM_BOOTSTRAP_FORCE_GFX_ARCH")
    if forced:
        return _number("ROCM_BOOTSTRAP_FORCE_GFX_ARCH", forced.split(","))
    list_file = system.variable("ROCM_TARGET_LST")
    if list_file:
        return _read_target_list(system, list_file)
    nodes = [node for node in list_nodes(system) if system.refusal(_properties_path(node)) not in NOT_OURS]
    gpus = [gpu for node in nodes for gpu in _read_node(system, node)]
    if gpus or not is_wsl(system):
        return gpus
    target = _read_override(system, 0)
    return [Gpu(0, target)] if target else []


def list_nodes(system: System) -> list[int]:
    """Return the numbers of all KFD nodes, CPUs included; none without the driver."""
    return sorted(int(name) for name in system.list_names(TOPOLOGY) if name.isdigit())


def is_wsl(system: System) -> bool:
    """Tell whether this is the Windows Subsystem for Linux, which has no KFD and shows no GPU in sysfs."""
    return system.exists("/dev/dxg") or "microsoft" in (system.read_text("/proc/sys/kernel/osrelease") or "").lower()


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
            found = f"{target!r} is no GPU target; expected names such as gfx90a or gfx90a:xnack-"
            raise DetectionError(source, found)
    return [Gpu(number, target) for number, target in enumerate(targets)]


def _read_target_list(system: System, path: str) -> list[Gpu]:
    source = f"ROCM_TARGET_LST={path}"
    text = system.read_text(path)
    if text is None:
        raise DetectionError(source, "the file cannot be read; correct the variable or unset it")
    return [gpu for gpu in _number(source, text.split()) if gpu.target != "gfx000"]


def _properties_path(node: int) -> str:
    return f"{TOPOLOGY}/{node}/properties"


def _read_node(system: System, node: int) -> list[Gpu]:
    path = _properties_path(node)
    properties = _read_properties(system, path)
    version = properties["gfx_target_version"]
    if not version and not properties["simd_count"]:
        return []
    target = _read_override(system, node)
    if not target and not version:
        found = (
            "a GPU without gfx_target_version, which Linux has told since 5.13; "
            "set HSA_OVERRIDE_GFX_VERSION to its version, such as 9.0.6"
        )
        raise DetectionError(path, found)
    return [
        Gpu(
            node,
            target or target_name(version),
            properties["device_id"],
            properties["drm_render_minor"],
            properties["cpu_cores_count"] > 0,
        )
    ]


def _read_properties(system: System, path: str) -> dict[str, int]:
    """Return those of the numbers that detection uses, 0 for one that isn't there."""
    text = system.read_text(path)
    if text is None:
        raise DetectionError(path, f"cannot be read ({system.refusal(path)})")
    properties = dict.fromkeys(PROPERTIES, 0)
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in properties and not value.strip().isdigit():
            raise DetectionError(path, f"{line!r} is no property; expected {name!r} and a number")
        if name in properties:
            properties[name] = int(value)
    return properties


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
        source = f"{name}={value}"
        raise DetectionError(source, "expected major.minor.stepping, such as 10.3.0")
    major, minor, stepping = map(int, match.groups())
    return target_name(major * 10000 + minor * 100 + stepping)
