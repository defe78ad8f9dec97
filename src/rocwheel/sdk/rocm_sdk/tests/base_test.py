"""Self tests of the set as a whole: versions, layout, GPUs."""

from __future__ import annotations

import unittest
from importlib.metadata import distribution

from .. import _build_info
from .._doctor.choice import check_choice
from .._doctor.device_code import check_device_code, needs_device_code
from .._doctor.installed import deviating_versions
from .._gpus.access import ERROR, WARNING
from .._gpus.detect import survey_gpus
from .._gpus.system import System
from .._packages import find_root
from .._select import CHOICE_VARIABLE

__all__ = ["BaseTest"]

META = _build_info.PACKAGES["meta"]["dist"]


class BaseTest(unittest.TestCase):
    """Tests what concerns several packages."""

    def test_all_packages_have_the_version_of_rocm(self) -> None:
        """Packages of different releases link to files that the others lack."""
        self.assertEqual(deviating_versions(), {}, f"rocm is of version {_build_info.VERSION}")

    def test_packages_are_side_by_side(self) -> None:
        """Run paths lead from one package to another by way of the folder that holds all."""
        roots = {name: find_root(name) for name in ("core", "libraries", "profiler")}
        parents = {root.parent for root in roots.values() if root}
        self.assertLessEqual(len(parents), 1, f"packages are installed in different folders: {roots}")

    def test_command_is_installed(self) -> None:
        """The command this test was started by may have been ``python -m rocm_sdk``."""
        scripts = [entry.name for entry in distribution(META).entry_points if entry.group == "console_scripts"]
        self.assertIn("rocm-sdk", scripts)

    def test_gpus_are_served_by_the_packages_installed(self) -> None:
        """Pip caches what it chose on another day: a GPU without its packages fails at the first kernel."""
        gpus, problems = survey_gpus(System())
        if not needs_device_code():
            self.skipTest("no package that needs device code is installed")
        self.assertEqual(problems, [])
        if not gpus:
            self.skipTest("no AMD GPU was found")
        diagnoses = check_device_code(System(), gpus)
        self.assertEqual([f"{text}: {remedy}" for level, text, remedy in diagnoses if level == ERROR], [])
        warnings = [text for level, text, _ in diagnoses if level == WARNING]
        if warnings:
            self.skipTest("; ".join(warnings))

    def test_choice_of_families_is_installed(self) -> None:
        """Pip caches what it chose for another value of the variable."""
        if not System().variable(CHOICE_VARIABLE):
            self.skipTest(f"{CHOICE_VARIABLE} is not set")
        diagnoses = check_choice(System())
        self.assertEqual([f"{text}: {remedy}" for _, text, remedy in diagnoses], [])
