"""Detects this machine's GPUs and access to them, using the code that ships in ``rocm_sdk``."""

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
    """A GPU of a machine, with information from the catalog."""

    node: int
    """The KFD node, or the position in the list from an environment variable that replaces detection."""
    target: str
    """The target ID; it has features only if an environment variable sets them."""
    kind: str
    """``integrated`` according to sysfs, or ``data-center`` or ``desktop`` from the catalog; empty if unknown."""
    device_id: int
    """The PCI device ID, or 0 if unknown."""
    render_node: str
    """The device file for access to the GPU, or an empty string if unknown."""


class Detection(msgspec.Struct, frozen=True):
    """A machine's GPUs, and the nodes and variables that rocwheel doesn't understand."""

    gpus: tuple[DetectedGpu, ...]
    """The GPUs in node order."""
    problems: tuple[InputError, ...]
    """Errors for nodes and environment variables that rocwheel doesn't understand; they may represent GPUs."""


def survey_machine(system: System | None = None) -> Detection:
    """Return the GPUs of ``system`` (by default, this machine), and the problems that were found."""
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
    """Return the GPUs of ``system`` (by default, this machine), and log a warning for each problem.

    If there are no GPUs, raise the problems instead: the `InputError`, or a `ProblemsError` for several problems.
    """
    detection = survey_machine(system)
    if not detection.gpus:
        raise_all("GPUs", detection.problems)
    for problem in detection.problems:
        logger.warning("%s", problem)
    return detection.gpus


def native_targets(system: System | None = None) -> Sequence[str]:
    """Return the distinct GPU targets of ``system`` (by default, this machine), which the word ``native`` represents.

    Raises `NoGpuError` if there are no GPUs.
    """
    targets = list(dict.fromkeys(gpu.target for gpu in find_gpus(system)))
    if not targets:
        raise NoGpuError
    return targets


class AccessReport(msgspec.Struct, frozen=True):
    """The results of `check_machine`."""

    gpus: tuple[str, ...]
    """The target of each GPU, in node order."""
    findings: tuple[Diagnosis, ...]
    """The findings, each with a severity (``error``, ``warning``, or ``note``), a text, and a remedy."""

    @property
    def usable(self) -> bool:
        """Whether nothing prevents the use of the GPUs; also true if there are no GPUs, unless a GPU is required."""
        return all(finding.level != ERROR for finding in self.findings)


def check_machine(system: System | None = None, *, require_gpu: bool = False) -> AccessReport:
    """Check the driver, the devices, and the permissions of ``system`` (by default, this machine)."""
    gpus, findings = survey_access(system or System(), require_gpu=require_gpu)
    return AccessReport(tuple(gpu.target for gpu in gpus), tuple(findings))


def _illegal_features(gpu: Gpu) -> dict[str, tuple[str, ...]]:
    """Return the features that a variable sets but the processor lacks, each with the processor's features."""
    row = load_catalog().processors.get(processor_of(gpu.target))
    named = parse_target_id(gpu.target).features
    return {feature: row.features for feature in named if row and feature not in row.features}


def _describe(gpu: Gpu) -> DetectedGpu:
    row = load_catalog().processors.get(processor_of(gpu.target))
    # An override changes the target, but not whether the GPU is integrated or on a card.
    kind = row.kind if isinstance(row, Target) and row.kind != "integrated" else ""
    kind = "integrated" if gpu.integrated else kind
    render_node = f"/dev/dri/renderD{gpu.render_minor}" if gpu.render_minor else ""
    return DetectedGpu(gpu.node, gpu.target, kind, gpu.device_id, render_node)
