"""The GPUs of this machine, found by the code that ships in ``rocm_sdk``, so that there is one detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.errors import InputError
from rocwheel.sdk.rocm_sdk._detect import Gpu, detect_gpus
from rocwheel.sdk.rocm_sdk._system import System

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Gpu", "System", "find_gpus", "native_targets"]


def find_gpus(system: System | None = None) -> list[Gpu]:
    """Return the GPUs of ``system`` (this machine), in the order of their nodes.

    Raises `InputError` for an environment variable or a sysfs file that can't be understood.
    """
    try:
        return detect_gpus(system or System())
    except ValueError as e:
        source, _, found = str(e).partition(": ")
        raise InputError(source, found) from e


def native_targets(system: System | None = None) -> Sequence[str]:
    """Return the target of each GPU of ``system`` (this machine), as ``native`` means it."""
    return [gpu.target for gpu in find_gpus(system)]
