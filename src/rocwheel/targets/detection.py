"""The GPUs of this machine, found by the code that ships in ``rocm_sdk``, so that there is one detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.errors import InputError
from rocwheel.sdk.rocm_sdk._detect import DetectionError, detect_gpus
from rocwheel.sdk.rocm_sdk._system import System
from rocwheel.targets.catalog import Target, load_catalog
from rocwheel.targets.families import base_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.sdk.rocm_sdk._detect import Gpu

__all__ = ["DetectedGpu", "System", "find_gpus", "native_targets"]


class DetectedGpu(msgspec.Struct, frozen=True):
    """A GPU of a machine, with what the catalogue adds."""

    node: int
    """Its KFD node, or its position in a list that an environment variable gives in place of detection."""
    target: str
    """Target id; with features only where an environment variable names them."""
    kind: str
    """``data-centre``, ``desktop``, ``integrated``, or empty when neither the catalogue nor sysfs tells."""
    device_id: int
    """PCI device id, 0 when not known."""
    render_node: str
    """The device file through which it is used, empty when not known."""


def find_gpus(system: System | None = None) -> list[DetectedGpu]:
    """Return the GPUs of ``system`` (this machine), in the order of their nodes.

    Raises `InputError` for an environment variable or a sysfs file that can't be understood.
    """
    try:
        return [_describe(gpu) for gpu in detect_gpus(system or System())]
    except DetectionError as e:
        raise InputError(e.source, e.found) from e


def native_targets(system: System | None = None) -> Sequence[str]:
    """Return the targets of the GPUs of ``system`` (this machine), each once: what ``native`` means."""
    return list(dict.fromkeys(gpu.target for gpu in find_gpus(system)))


def _describe(gpu: Gpu) -> DetectedGpu:
    row = load_catalog().processors.get(base_target(gpu.target))
    kind = row.kind if isinstance(row, Target) else ""
    render_node = f"/dev/dri/renderD{gpu.render_minor}" if gpu.render_minor else ""
    return DetectedGpu(gpu.node, gpu.target, kind or "integrated" * gpu.integrated, gpu.device_id, render_node)
