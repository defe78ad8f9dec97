"""Self tests of rocm-sdk-core."""

from __future__ import annotations

import unittest

from .. import _build_info, find_libraries
from .._installing import installation_hint
from .._packages import find_root
from ._support import (
    check_load,
    find_script,
    needs_its_program,
    read_scripts,
    run_script,
    shared_libraries,
    usable_gpus,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CoreTest"]


class CoreTest(unittest.TestCase):
    """Tests the runtime, its public libraries and its programs."""

    def test_core_is_installed(self) -> None:
        """Everything else needs it."""
        if find_root("core") is None:
            self.fail(f"the ROCm core is not installed. Install with: {installation_hint()}")

    def test_public_libraries_load(self) -> None:
        """Each is found by its short name and loads in a process of its own."""
        check_public_libraries(self, "core")

    def test_all_shared_libraries_load(self) -> None:
        """Also those that others load later, such as plug-ins."""
        check_all_libraries(self, "core")

    def test_console_scripts_run(self) -> None:
        """Each leads to a program, and those that can print their version do so."""
        check_scripts(self, "core")


def check_public_libraries(test: unittest.TestCase, package: str) -> None:
    """Find and load the public libraries of a package."""
    for name, info in _build_info.LIBRARIES.items():
        if info["package"] != package:
            continue
        with test.subTest(library=name):
            for path in find_libraries(name):
                require_load(test, path)


def check_all_libraries(test: unittest.TestCase, package: str) -> None:
    """Load every shared library of a package."""
    root = find_root(package)
    for path in shared_libraries(root) if root else ():
        with test.subTest(library=str(path)):
            require_load(test, path)


def require_load(test: unittest.TestCase, path: Path) -> None:
    """Let a test fail unless a library loads, by itself or into the program that it is a plug-in of."""
    problem = check_load(path)
    if problem and not needs_its_program(path, problem):
        test.fail(problem if str(path) in problem else f"{path}: {problem}")


def check_scripts(test: unittest.TestCase, package: str) -> None:
    """Run the console scripts of a package that can be run without harm."""
    without_gpu = not usable_gpus()
    left_out = []
    for name, info in read_scripts(package).items():
        with test.subTest(script=name):
            script = find_script(package, name)
            if script is None:
                test.fail(f"the console script {name} is not there, or is none of {package}")
            if info.get("gpu") and without_gpu:
                left_out.append(name)
            elif "check" in info and (problem := run_script(script, info["check"])):
                test.fail(problem)
    if left_out:
        test.skipTest(f"not run, as they need a GPU: {', '.join(left_out)}")
