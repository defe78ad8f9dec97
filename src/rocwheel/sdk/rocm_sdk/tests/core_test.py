"""Self-tests of rocm-sdk-core."""

from __future__ import annotations

import unittest

from .._installing import installation_hint
from .._packages import find_root
from ._support import check_all_libraries, check_public_libraries, check_scripts


class CoreTest(unittest.TestCase):
    """Tests the runtime, its public libraries, and its programs."""

    def test_core_is_installed(self) -> None:
        """Check the core, because all other packages need it."""
        if find_root("core") is None:
            self.fail(f"the ROCm core is not installed. Install with: {installation_hint()}")

    def test_public_libraries_load(self) -> None:
        """Check that each library is found by its short name and loads in its own process."""
        check_public_libraries(self, "core")

    def test_all_shared_libraries_load(self) -> None:
        """Check all libraries, including libraries that others load later, such as plug-ins."""
        check_all_libraries(self, "core")

    def test_console_scripts_run(self) -> None:
        """Check that each script points to a program. Programs that can print their version must do so."""
        check_scripts(self, "core")
