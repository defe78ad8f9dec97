"""The breaches of all rules, from the tests of each."""

from __future__ import annotations

from tests.audit.rules import (
    test_conflicts,
    test_device_code,
    test_hardening,
    test_layout,
    test_metadata,
    test_needed_libraries,
    test_providers,
    test_run_paths,
    test_tags,
    test_undefined_symbols,
)
from tests.audit.rules.windows import test_archives, test_dlls, test_images, test_names, test_sets

__all__ = ["ALL_BREACHES"]

ALL_BREACHES = {
    **test_needed_libraries.BREACHES,
    **test_providers.BREACHES,
    **test_undefined_symbols.BREACHES,
    **test_run_paths.BREACHES,
    **test_layout.BREACHES,
    **test_tags.BREACHES,
    **test_hardening.BREACHES,
    **test_conflicts.BREACHES,
    **test_device_code.BREACHES,
    **test_metadata.BREACHES,
    **test_dlls.BREACHES,
    **test_sets.BREACHES,
    **test_images.BREACHES,
    **test_archives.BREACHES,
    **test_names.BREACHES,
}
