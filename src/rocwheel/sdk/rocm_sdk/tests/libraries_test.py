"""Self-tests of rocm-sdk-libraries."""

from __future__ import annotations

import unittest

from ._support import check_all_libraries, check_public_libraries


class LibrariesTest(unittest.TestCase):
    """Tests the mathematical libraries."""

    def test_public_libraries_load(self) -> None:
        """Check that each library is found by its short name and loads in its own process."""
        check_public_libraries(self, "libraries")

    def test_all_shared_libraries_load(self) -> None:
        """Check all libraries, including libraries that others load later, such as plug-ins."""
        check_all_libraries(self, "libraries")
