"""Self-tests of rocm-sdk-devel."""

from __future__ import annotations

import os
import unittest

from .._devel import get_devel_root
from ._support import require_load, shared_libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class DevelTest(unittest.TestCase):
    """Tests the development tree, and expands the tree first if necessary."""

    def test_tree_has_cmake_files(self) -> None:
        """Check the folder that CMake's ``find_package`` searches, which is the output of ``rocm-sdk path --cmake``."""
        folder = get_devel_root() / "lib" / "cmake"
        if not any(folder.rglob("*onfig.cmake")):
            self.fail(f"there are no CMake package files in {folder}")

    def test_links_lead_somewhere(self) -> None:
        """Check the links, because links to files in other packages depend on those packages."""
        root = get_devel_root()
        links = (path for path in root.rglob("*") if path.is_symlink())
        broken = [str(path) for path in links if not path.exists() and _leads_out(root, path)]
        if broken:
            self.fail("\n".join(["broken links; reinstall all packages in the set together:", *broken]))

    def test_shared_libraries_load(self) -> None:
        """Check only the libraries that belong to this package.

        Other libraries are links to libraries that other tests cover.
        """
        for path in shared_libraries(get_devel_root()):
            with self.subTest(library=str(path)):
                require_load(self, path)


def _leads_out(root: Path, link: Path) -> bool:
    """Return whether a link points to another package. Links inside the tree come from ROCm itself."""
    target = os.path.normpath(link.parent / link.readlink())
    return not target.startswith(f"{root}{os.sep}")
