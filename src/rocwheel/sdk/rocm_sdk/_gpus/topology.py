"""Reads the GPUs of the KFD topology in sysfs.

Its layout: https://www.kernel.org/doc/html/latest/gpu/amdgpu/index.html and libhsakmt's ``topology.c``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .gfx_version import DetectionError, is_version, target_name
from .hsa_override import read_override

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .system import System

__all__ = [
    "INTEGRATED",
    "NOT_OURS",
    "TOPOLOGY",
    "Gpu",
    "list_nodes",
    "read_topology",
]

TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
"""Folder that holds a numbered folder for each node, CPUs included."""

PROPERTIES = ("simd_count", "cpu_cores_count", "gfx_target_version", "device_id", "drm_render_minor")

NUMBER = re.compile("[0-9]{1,20}")
"""What the kernel writes: no more digits than a number of 64 bits has."""

NOT_OURS = ("EPERM", "EACCES")
"""What the kernel answers for a node whose device is hidden from the container."""

INTEGRATED = re.compile(r"gfx(70[035]|801|810|90[29c]|1013|103[356]|1103|115\d|117\d)")
"""Targets that only integrated GPUs have. Since Linux 6.6, which dropped IOMMUv2, their nodes have no CPU cores."""


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
    """Whether it is part of a processor: its node has CPU cores too, or only integrated GPUs have its target."""

    number: int = 0
    """The number of its node for the runtime, which leaves out hidden nodes and numbers the others from 0."""


def list_nodes(system: System) -> list[int]:
    """Return the numbers of all KFD nodes, CPUs included; none without the driver.

    Raises `DetectionError` when there are nodes that can't be listed.
    """
    refusal = system.listing_refusal(TOPOLOGY)
    if refusal not in ("", "ENOENT"):
        raise DetectionError(TOPOLOGY, f"can't be listed ({refusal}), so there may be GPUs that nothing is known of")
    return sorted(int(name) for name in system.list_names(TOPOLOGY) if NUMBER.fullmatch(name))


def read_topology(system: System) -> tuple[list[Gpu], list[DetectionError]]:
    """Return the GPUs of the nodes, and an error for each node that can't be understood.

    ``HSA_OVERRIDE_GFX_VERSION`` (or ``..._<number>``) replaces a node's version. Nodes that a container hides are left
    out, as the runtime leaves them out.
    """
    gpus: list[Gpu] = []
    problems: dict[str, DetectionError] = {}
    try:
        nodes = list_nodes(system)
    except DetectionError as e:
        return [], [e]
    shown = [node for node in nodes if system.refusal(_properties_path(node)) not in NOT_OURS]
    for number, node in enumerate(shown):
        gpus += _read_or_note(system, node, number, problems)
    return gpus, list(problems.values())


def _properties_path(node: int) -> str:
    return f"{TOPOLOGY}/{node}/properties"


def _read_or_note(system: System, node: int, number: int, problems: dict[str, DetectionError]) -> list[Gpu]:
    try:
        return _read_node(system, node, number)
    except DetectionError as e:  # a variable that is wrong for every node is reported once
        problems[str(e)] = e
        return []


def _read_node(system: System, node: int, number: int) -> list[Gpu]:
    path = _properties_path(node)
    properties = _read_properties(system, path)
    version = properties["gfx_target_version"]
    if not version and not properties["simd_count"]:
        return []
    target = read_override(system, number) or _target_of_version(path, version)
    return [
        Gpu(
            node,
            target,
            properties["device_id"],
            properties["drm_render_minor"],
            properties["cpu_cores_count"] > 0 or INTEGRATED.fullmatch(target_name(version)) is not None,
            number,
        )
    ]


def _target_of_version(path: str, version: int) -> str:
    if not version:
        found = (
            "a GPU without gfx_target_version, which Linux shows since 5.13; "
            "set HSA_OVERRIDE_GFX_VERSION to its version, such as 9.0.6"
        )
        raise DetectionError(path, found)
    if not is_version(version):
        found = (
            f"'gfx_target_version {version}' is not the version of a GPU; "
            "expected major * 10000 + minor * 100 + stepping, such as 90010 for gfx90a"
        )
        raise DetectionError(path, found)
    return target_name(version)


def _read_properties(system: System, path: str) -> dict[str, int]:
    """Return the numbers that detection uses, 0 for each that is absent."""
    text = system.read_text(path)
    if text is None:
        raise DetectionError(path, f"can't be read ({system.refusal(path)})")
    properties: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in PROPERTIES and not NUMBER.fullmatch(value.strip(" ")):
            raise DetectionError(path, f"{line!r} is not a property; expected {name!r} and a number")
        if name in PROPERTIES:
            properties[name] = int(value)
    # The kernel writes it for every node, 0 for one of CPUs.
    if "simd_count" not in properties:
        found = f"begins with {text[:40]!a}" if text.strip() else "is empty"
        raise DetectionError(path, f"{found}; expected properties, 'simd_count' and a number among them")
    return {name: properties.get(name, 0) for name in PROPERTIES}
