"""The rules of the audit, one small function each, in modules by what they look at."""

from __future__ import annotations

from rocwheel.audit.rules import (
    collisions,
    device_code,
    hardening,
    layout,
    metadata,
    resolution,
    run_paths,
    symbols,
    tags,
)

__all__ = ["ALL_RULES"]

ALL_RULES = (
    *resolution.RULES,
    *symbols.RULES,
    *run_paths.RULES,
    *layout.RULES,
    *tags.RULES,
    *hardening.RULES,
    *collisions.RULES,
    *device_code.RULES,
    *metadata.RULES,
)
