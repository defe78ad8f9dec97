"""The GPUs of this machine, found by the code that ships in ``rocm_sdk``, so that there is one detection."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects.target_id import parse_target_id
from rocwheel.foundation.errors import InputError
from rocwheel.sdk.rocm_sdk._detect import replacing_variable, survey_gpus
from rocwheel.sdk.rocm_sdk._system import System
from rocwheel.targets.catalog.catalog import Target, load_catalog
from rocwheel.targets.catalog.families import base_target
from rocwheel.targets.errors import IllegalFeatureError, NoGpuError, raise_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.sdk.rocm_sdk._topology import Gpu

__all__ = ["DetectedGpu", "Detection", "System", "find_gpus", "native_targets", "survey_machine"]

logger = logging.getLogger(__name__)


class DetectedGpu(msgspec.Struct, frozen=True):
    """A GPU of a machine, with what the catalogue adds."""

    node: int
    """Its KFD node, or its position in a list that an environment variable gives in place of detection."""
    target: str
    """Target id; with features only where an environment variable names them."""
    kind: str
    """``integrated`` when sysfs says so, else the catalogue's ``data-centre`` or ``desktop``; empty for neither."""
    device_id: int
    """PCI device id, 0 when not known."""
    render_node: str
    """The device file through which it is used, empty when not known."""


class Detection(msgspec.Struct, frozen=True):
    """What could be told of a machine."""

    gpus: tuple[DetectedGpu, ...]
    """In the order of their nodes."""
    problems: tuple[InputError, ...]
    """Nodes, or environment variables, that can't be understood; there may be GPUs behind them."""


def survey_machine(system: System | None = None) -> Detection:
    """Look for the GPUs of ``system`` (this machine)."""
    machine = system or System()
    found, problems = survey_gpus(machine)
    gpus = [gpu for gpu in found if not _illegal_features(gpu)]
    errors = [InputError(e.source, e.found) for e in problems]
    errors += [
        IllegalFeatureError(gpu.target, feature, allowed, source=replacing_variable(machine))
        for gpu in found
        for feature, allowed in _illegal_features(gpu).items()
    ]
    return Detection(tuple(map(_describe, gpus)), tuple(errors))


def find_gpus(system: System | None = None) -> Sequence[DetectedGpu]:
    """Return the GPUs of ``system`` (this machine); what can't be understood beside them is logged as a warning.

    Raises the `InputError` of it, or one `ProblemsError` for several, when there is no GPU but that.
    """
    detection = survey_machine(system)
    if not detection.gpus:
        raise_all("GPUs", detection.problems)
    for problem in detection.problems:
        logger.warning("%s", problem)
    return detection.gpus


def native_targets(system: System | None = None) -> Sequence[str]:
    """Return the targets of the GPUs of ``system`` (this machine), each once: what ``native`` means.

    Raises `NoGpuError` when there is none.
    """
    targets = list(dict.fromkeys(gpu.target for gpu in find_gpus(system)))
    if not targets:
        raise NoGpuError
    return targets


def _illegal_features(gpu: Gpu) -> dict[str, tuple[str, ...]]:
    """Return the features that a variable sets and the processor lacks, each with those that it has."""
    row = load_catalog().processors.get(base_target(gpu.target))
    named = parse_target_id(gpu.target).features
    return {feature: row.features for feature in named if row and feature not in row.features}


def _describe(gpu: Gpu) -> DetectedGpu:
    row = load_catalog().processors.get(base_target(gpu.target))
    # An override changes the target, and makes no card of a GPU that is part of a processor, or a part of a card.
    kind = row.kind if isinstance(row, Target) and row.kind != "integrated" else ""
    kind = "integrated" if gpu.integrated else kind
    render_node = f"/dev/dri/renderD{gpu.render_minor}" if gpu.render_minor else ""
    return DetectedGpu(gpu.node, gpu.target, kind, gpu.device_id, render_node)
