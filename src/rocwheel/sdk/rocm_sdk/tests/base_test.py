"""Self-tests of the complete set of packages, such as versions, layout, and GPUs."""

from __future__ import annotations

import unittest

from .. import _build_info
from .._distributions import find_distribution
from .._doctor_device_code import check_choice, check_device_code, needs_device_code
from .._doctor_packages import deviating_versions
from .._gpu_access import ERROR, WARNING
from .._gpus import survey_gpus
from .._packages import find_root
from .._select import CHOICE_VARIABLE
from .._system import System

META = _build_info.PACKAGES["meta"]["dist"]


class BaseTest(unittest.TestCase):
    """Tests several packages together."""

    def test_all_packages_have_the_version_of_rocm(self) -> None:
        """Check the versions, because packages from different releases link to files that don't exist in the others."""
        deviating = ", ".join(f"{dist} has version {text}" for dist, text in deviating_versions().items())
        if deviating:
            self.fail(f"{META} has version {_build_info.VERSION}, but {deviating}")

    def test_packages_are_side_by_side(self) -> None:
        """Check the folders, because run paths refer from one package to another through the common folder."""
        roots = {name: find_root(name) for name in ("core", "libraries", "profiler")}
        places = {name: root.parent for name, root in roots.items() if root}
        if len(set(places.values())) > 1:
            listed = ", ".join(f"{name} in {place}" for name, place in places.items())
            self.fail(f"the packages must be in one folder: {listed}")

    def test_metadata_names_the_command(self) -> None:
        """Check the metadata that installers use to create ``rocm-sdk``. ``python -m rocm_sdk`` works without it."""
        scripts = [entry.name for entry in find_distribution(META).entry_points if entry.group == "console_scripts"]
        if "rocm-sdk" not in scripts:
            self.fail(f"the metadata of {META} lacks the console script rocm-sdk")

    def test_gpus_are_served_by_the_packages_installed(self) -> None:
        """Check the GPUs, because pip caches earlier choices. A GPU without its packages fails at the first kernel."""
        gpus, problems = survey_gpus(System())
        if not needs_device_code():
            self.skipTest("no package that needs device code is installed")
        if problems:
            self.fail("\n".join(map(str, problems)))
        if not gpus:
            self.skipTest("no AMD GPU was found")
        diagnoses = check_device_code(System(), gpus)
        errors = [f"{text}: {remedy}" for level, text, remedy in diagnoses if level == ERROR]
        if errors:
            self.fail("\n".join(errors))
        warnings = [text for level, text, _ in diagnoses if level == WARNING]
        if warnings:
            self.skipTest("; ".join(warnings))

    def test_choice_of_families_is_installed(self) -> None:
        """Check the choice, because pip may have cached the choice for another value of the variable."""
        if not System().variable(CHOICE_VARIABLE):
            self.skipTest(f"{CHOICE_VARIABLE} is not set")
        diagnoses = check_choice(System())
        if diagnoses:
            self.fail("\n".join(f"{text}: {remedy}" for _, text, remedy in diagnoses))
