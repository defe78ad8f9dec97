"""Self tests of the set as a whole: versions, layout, GPUs."""

from __future__ import annotations

import unittest
from importlib.metadata import PackageNotFoundError, distribution, version

from .. import _build_info
from .._detect import base_target, detect_gpus
from .._packages import SITE, describe_package, find_root, installed_devices, library_family
from .._select import family_serving
from .._system import System

__all__ = ["BaseTest"]


class BaseTest(unittest.TestCase):
    """Tests what concerns several packages."""

    def test_all_packages_have_the_version_of_rocm(self) -> None:
        """Packages of different releases link to files that the others lack."""
        for dist in _installed_distributions():
            with self.subTest(dist=dist):
                self.assertEqual(version(dist).split(".post")[0], _build_info.VERSION.split(".post")[0])

    def test_packages_are_side_by_side(self) -> None:
        """Run paths lead from one package to another by way of the folder that holds all."""
        roots = {name: find_root(name) for name in ("core", "libraries", "profiler")}
        parents = {root.parent for root in roots.values() if root}
        self.assertLessEqual(len(parents), 1, f"packages are installed in different folders: {roots}")

    def test_command_is_installed(self) -> None:
        """The command this test was started by may have been ``python -m rocm_sdk``."""
        scripts = [entry.name for entry in distribution("rocm").entry_points if entry.group == "console_scripts"]
        self.assertIn("rocm-sdk", scripts)

    def test_gpus_are_served_by_the_packages_installed(self) -> None:
        """Pip caches what it chose on another day: a GPU without its packages fails at the first kernel."""
        system = System()
        targets = sorted({base_target(gpu.target) for gpu in detect_gpus(system)})
        if not targets:
            self.skipTest("no AMD GPU was found")
        present = _installed_families()
        if present is None:
            self.skipTest("no package with code for GPUs is installed")
        lacking = [target for target in targets if family_serving(target, system.platform) not in present]
        self.assertEqual(lacking, [], _advice(lacking, present))


def _installed_distributions() -> list[str]:
    families = ["", *_build_info.FAMILIES]
    packages = [describe_package(logical, family) for logical in _build_info.PACKAGES for family in families]
    names = sorted({package.dist for package in packages if package})
    return [name for name in names if _is_installed(name)]


def _is_installed(dist: str) -> bool:
    try:
        version(dist)
    except PackageNotFoundError:
        return False
    return True


def _installed_families() -> list[str] | None:
    """Return the families whose device code is installed, None when there is none that could lack any."""
    if "device" in _build_info.PACKAGES:
        return installed_devices() if find_root("libraries") else None
    if _build_info.LAYOUT == "per-family" and find_root("libraries"):
        return [library_family()]
    return None


def _advice(lacking: list[str], present: list[str]) -> str:
    extra = "device" if "device" in _build_info.PACKAGES else "libraries"
    return (
        f"found GPUs {', '.join(lacking)}, but installed in {SITE} is device code for {', '.join(present) or 'none'}. "
        f'Install what suits: pip install --no-cache-dir --force-reinstall "rocm[{extra}]=={_build_info.VERSION}"'
    )
