"""Checks that the GPUs of a machine can share the libraries that a process loads, where there are some for each."""

from __future__ import annotations

from ... import _build_info
from ..._gpus.access import NOTE, WARNING, Diagnosis
from ..._gpus.detect import base_target
from ..._overlays import choose_device
from ..._packages import installed_devices
from ..._select import family_serving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..._gpus.system import System

__all__ = ["check_libraries"]


def check_libraries(system: System) -> list[Diagnosis]:
    """Return a warning for each kind of GPU whose installed package a process with all GPUs doesn't use.

    It is a note for those that are part of a processor. GPUs without a package are reported elsewhere.
    """
    if not _build_info.OVERLAID:
        return []
    choice, installed = choose_device(system), installed_devices()
    levels: dict[str, str] = {}
    for gpu in choice.left_out:
        if family_serving(gpu.target, system.platform) in installed:
            target, level = base_target(gpu.target), NOTE if gpu.integrated else WARNING
            levels[target] = WARNING if WARNING in (levels.get(target), level) else NOTE
    used = f"the libraries for {choice.device}" if choice.device else "the libraries for all GPUs"
    remedy = "Run a process for each kind of GPU, and show it that kind alone: export ROCR_VISIBLE_DEVICES=NUMBERS"
    return [
        Diagnosis(level, f"a process that sees all GPUs uses {used}, which have no code for {target}", remedy)
        for target, level in levels.items()
    ]
