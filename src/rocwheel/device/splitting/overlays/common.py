"""The set of targets whose code libraries keep for all GPUs, unless the user names one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import TargetId
from rocwheel.targets.catalog.catalog import sort_key
from rocwheel.targets.catalog.similar_code import relabelled_agents

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["default_common"]


def default_common(codes: Iterable[TargetId]) -> tuple[TargetId, ...]:
    """Return the generic targets among ``codes``: the least code that runs on the most GPUs.

    Where there are none, it is the target whose instructions the most other GPUs have (users make these take its code
    by ``HSA_OVERRIDE_GFX_VERSION``); of equal ones, the newest.
    """
    processors = {code.processor for code in codes}
    generic = sorted((name for name in processors if TargetId(name).is_generic), key=sort_key)
    specific = sorted((name for name in processors if name.startswith("gfx")), key=sort_key)
    shared = max(specific, key=lambda name: (len(relabelled_agents(name)), specific.index(name)), default=None)
    return tuple(map(TargetId, generic or ([shared] if shared else [])))
