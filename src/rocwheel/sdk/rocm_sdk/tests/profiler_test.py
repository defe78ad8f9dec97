"""Self-tests of rocm-profiler."""

from __future__ import annotations

import unittest

from ._support import check_all_libraries, check_scripts


class ProfilerTest(unittest.TestCase):
    """Tests the profilers."""

    def test_all_shared_libraries_load(self) -> None:
        """Check all libraries, including libraries that others load later, such as plug-ins."""
        check_all_libraries(self, "profiler")

    def test_console_scripts_run(self) -> None:
        """Check that each script points to a program. Programs that can print their version must do so."""
        check_scripts(self, "profiler")
