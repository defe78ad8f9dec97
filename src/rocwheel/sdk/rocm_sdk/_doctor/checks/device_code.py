"""Checks that the installed packages carry code for the GPUs that programs see."""

from __future__ import annotations

from ... import _build_info
from ..._gpus.access import ERROR, NOTE, WARNING, Diagnosis
from ..._gpus.detect import base_target, survey_gpus
from ..._gpus.visible import visible_gpus
from ..._installing import installation_hint
from ..._packages import find_root, installed_families
from ..._select import available_families, family_serving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..._gpus.system import System
    from ..._gpus.topology import Gpu

__all__ = ["check_device_code", "lack_levels", "needs_device_code"]


def needs_device_code() -> bool:
    """Return whether libraries are installed whose code for GPUs comes in packages of a family or a target."""
    if _build_info.LAYOUT == "neutral":
        return "device" in _build_info.PACKAGES and find_root("libraries") is not None
    return bool(installed_families())


def check_device_code(system: System, gpus: list[Gpu]) -> list[Diagnosis]:
    """Return what is wrong with the code for each target among the GPUs.

    A lack is an error. For integrated GPUs it is a warning, or a note when there is another GPU, as it hinders nobody.
    Libraries that carry the code for all GPUs need no package for a GPU. Where they keep some code beside packages with
    whole libraries, the lack of one is a warning for GPUs that run it.
    """
    if not _build_info.FAMILIES:
        return []
    visible = visible_gpus(system, gpus)
    levels = lack_levels(system, gpus)
    return [
        diagnosis for target, level in levels.items() for diagnosis in _check_target(system, visible, target, level)
    ]


def lack_levels(system: System, gpus: list[Gpu]) -> dict[str, str]:
    """Return how bad a lack of code is for each target among the GPUs that programs see."""
    visible = visible_gpus(system, gpus)
    kinds: dict[str, bool] = {}
    for gpu in visible.values():  # a target counts as integrated only when all its GPUs are
        target = base_target(gpu.target)
        kinds[target] = kinds.get(target, True) and gpu.integrated
    if_integrated = WARNING if all(kinds.values()) else NOTE
    return {target: if_integrated if integrated else ERROR for target, integrated in kinds.items()}


def _check_target(system: System, visible: dict[int, Gpu], target: str, level: str) -> list[Diagnosis]:
    gpu = target if level == ERROR else f"{target}, which is integrated"
    family = family_serving(target, system.platform)
    if family is None:
        available = ", ".join(available_families(system.platform)) or f"none for {system.platform}"
        text = f"ROCm {_build_info.VERSION}, which has {available}, has no packages for {gpu}"
        return [Diagnosis(level, text, _way_around(system, visible))]
    if family in installed_families():
        return []
    logical, content = ("device", "kernels") if _build_info.LAYOUT == "neutral" else ("libraries", "libraries")
    text = f"the package with the {content} for {gpu} is not installed"
    if target in _build_info.COMMON_GPUS:
        text += ": it has the code that the libraries for all GPUs keep, and no kernel files"
        level = WARNING if level == ERROR else level
    return [Diagnosis(level, text, installation_hint(f"{logical}-{family}"))]


def _way_around(system: System, visible: dict[int, Gpu]) -> str:
    """Return the remedy for a GPU that this release can't serve: to use the other GPUs alone."""
    served = {number: gpu.target for number, gpu in visible.items() if family_serving(gpu.target, system.platform)}
    if not served:
        return "pip index versions rocm lists other releases"
    if survey_gpus(system)[1]:  # the runtime may count a GPU that can't be understood, or not
        targets = ", ".join(dict.fromkeys(served.values()))
        return f"Set HIP_VISIBLE_DEVICES to the numbers of {targets} among the GPUs that rocminfo lists"
    return f"export HIP_VISIBLE_DEVICES={','.join(map(str, served))}"
