"""The GPUs of this machine and the access to them, found by the code that ships in ``rocm_sdk``: one detection."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import parse_target_id, processor_of
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.sdk.rocm_sdk._gpu_access import ERROR, Diagnosis, survey_access
from rocwheel.sdk.rocm_sdk._gpus import replacing_variable, survey_gpus
from rocwheel.sdk.rocm_sdk._system import System
from rocwheel.targets.catalog import Target, load_catalog
from rocwheel.targets.errors import IllegalFeatureError, NoGpuError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.sdk.rocm_sdk._gpus import Gpu

__all__ = [
    "AccessReport",
    "DetectedGpu",
    "Detection",
    "Diagnosis",
    "System",
    "check_machine",
    "find_gpus",
    "native_targets",
    "survey_machine",
]

logger = logging.getLogger(__name__)


class DetectedGpu(msgspec.Struct, frozen=True):
    """A GPU of a machine, with what the catalog adds."""

    node: int
    """Its KFD node, or its position in the list of an environment variable that replaces detection."""
    target: str
    """Target id; with features only where an environment variable names them."""
    kind: str
    """``integrated`` when sysfs says so, else the catalog's ``data-centre`` or ``desktop``; empty for neither."""
    device_id: int
    """PCI device id, 0 when not known."""
    render_node: str
    """The device file through which it is used, empty when not known."""


class Detection(msgspec.Struct, frozen=True):
    """The GPUs of a machine, and what could not be understood."""

    gpus: tuple[DetectedGpu, ...]
    """In the order of their nodes."""
    problems: tuple[InputError, ...]
    """Nodes and environment variables that can't be understood; there may be GPUs behind them."""


def survey_machine(system: System | None = None) -> Detection:
    """Return the GPUs of ``system`` (by default this machine), and what can't be understood."""
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
    """Return the GPUs of ``system`` (by default this machine), and log a warning for all that can't be understood.

    When there is no GPU, that is raised instead: the `InputError`, or one `ProblemsError` for several.
    """
    detection = survey_machine(system)
    if not detection.gpus:
        raise_all("GPUs", detection.problems)
    for problem in detection.problems:
        logger.warning("%s", problem)
    return detection.gpus


def native_targets(system: System | None = None) -> Sequence[str]:
    """Return the targets of the GPUs of ``system`` (by default this machine), each once: what ``native`` means.

    Raises `NoGpuError` when there is none.
    """
    targets = list(dict.fromkeys(gpu.target for gpu in find_gpus(system)))
    if not targets:
        raise NoGpuError
    return targets


class AccessReport(msgspec.Struct, frozen=True):
    """What `check_machine` found."""

    gpus: tuple[str, ...]
    """The target of each GPU, in the order of their nodes."""
    findings: tuple[Diagnosis, ...]
    """Each with a level (``error``, ``warning`` or ``note``), a text, and the remedy."""

    @property
    def usable(self) -> bool:
        """Whether nothing keeps the user from the GPUs; also true when there is none, unless one is required."""
        return all(finding.level != ERROR for finding in self.findings)


def check_machine(system: System | None = None, *, require_gpu: bool = False) -> AccessReport:
    """Check the driver, the devices and the permissions of ``system`` (by default this machine)."""
    gpus, findings = survey_access(system or System(), require_gpu=require_gpu)
    return AccessReport(tuple(gpu.target for gpu in gpus), tuple(findings))


def _illegal_features(gpu: Gpu) -> dict[str, tuple[str, ...]]:
    """Return the features that a variable sets but the processor lacks, each with the features that it has."""
    row = load_catalog().processors.get(processor_of(gpu.target))
    named = parse_target_id(gpu.target).features
    return {feature: row.features for feature in named if row and feature not in row.features}


def _describe(gpu: Gpu) -> DetectedGpu:
    row = load_catalog().processors.get(processor_of(gpu.target))
    # An override changes the target; it does not turn an integrated GPU into a card, nor a card into an integrated GPU.
    kind = row.kind if isinstance(row, Target) and row.kind != "integrated" else ""
    kind = "integrated" if gpu.integrated else kind
    render_node = f"/dev/dri/renderD{gpu.render_minor}" if gpu.render_minor else ""
    return DetectedGpu(gpu.node, gpu.target, kind, gpu.device_id, render_node)
