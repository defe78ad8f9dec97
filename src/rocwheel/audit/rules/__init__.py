"""The audit's rules, in one module for each subject. Each rule is a small function."""

from __future__ import annotations

from rocwheel.audit.rules import (
    conflicts,
    device_code,
    hardening,
    layout,
    metadata,
    needed_libraries,
    providers,
    run_paths,
    tags,
    undefined_symbols,
    windows,
)

ALL_RULES = (
    *needed_libraries.RULES,
    *providers.RULES,
    *undefined_symbols.RULES,
    *run_paths.RULES,
    *layout.RULES,
    *tags.RULES,
    *hardening.RULES,
    *conflicts.RULES,
    *device_code.RULES,
    *metadata.RULES,
    *windows.RULES,
)
"""All rules, in the order in which users see them."""
