"""Which GPUs a program sees, by the variables that hide them from it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .system import System
    from .topology import Gpu

__all__ = ["visible_gpus"]


def visible_gpus(system: System, gpus: list[Gpu]) -> dict[int, Gpu]:
    """Return the GPUs that a program sees, by the numbers that ``HIP_VISIBLE_DEVICES`` has for them.

    The runtime numbers GPUs in the order of the kernel's nodes. ``ROCR_VISIBLE_DEVICES`` takes some of them,
    which HIP then numbers from 0. When its own variable isn't set, HIP reads ``CUDA_VISIBLE_DEVICES``.
    """
    reachable = dict(enumerate(_choose(system.variable("ROCR_VISIBLE_DEVICES"), dict(enumerate(gpus))).values()))
    return _choose(system.variable("HIP_VISIBLE_DEVICES") or system.variable("CUDA_VISIBLE_DEVICES"), reachable)


def _choose(value: str, gpus: dict[int, Gpu]) -> dict[int, Gpu]:
    """Return the GPUs that a variable names, up to the first number without a GPU: the runtimes' rule.

    Returns all for a variable that isn't set, and for one with UUIDs, which the topology doesn't show for all GPUs.
    """
    words = [word.strip() for word in value.split(",")]
    if not value or any(word.upper().startswith("GPU-") for word in words):
        return gpus
    chosen: dict[int, Gpu] = {}
    for word in words:
        number = int(word) if word.isdecimal() and len(word) < 10 else -1
        if number not in gpus:
            break
        chosen[number] = gpus[number]
    return chosen
