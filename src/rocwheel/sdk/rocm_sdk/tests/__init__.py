"""Runs the self-tests of an installation, ``rocm-sdk test``. The tests pass without a GPU, and report skipped checks.

Each check prints one line: ``passed``, ``failed`` with the reasons below it, or ``left out`` with the reason.
"""

from __future__ import annotations

import re
import sys
import unittest
from importlib import import_module

from .. import _build_info
from .._installing import reinstallation_hint
from .._output import printable
from .._packages import find_module, find_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Union

    Error = Union[tuple[type[BaseException], BaseException, TracebackType], tuple[None, None, None]]

__all__ = ["run_tests"]

SPELLINGS = {"gpus": "GPUs", "cmake": "CMake", "python": "Python"}


def run_tests() -> int:
    """Run the tests of all installed packages and return the exit status."""
    result = PlainResult()
    for logical in ("base", "core", "libraries", "devel", "profiler"):
        if _is_installed(logical):
            _load(logical).run(result)
        else:
            _print(f"absent    {logical}: the package is not installed")  # these checks don't count in the total
    result.print_sum()
    return 0 if result.wasSuccessful() else 1


def _load(logical: str) -> unittest.TestCase | unittest.TestSuite:
    """Return the checks of a package, or a failing check if imported files of ``rocm_sdk`` are missing."""
    try:
        return unittest.defaultTestLoader.loadTestsFromModule(import_module(f"{__name__}.{logical}_test"))
    except ImportError as e:
        reason = f"{e}. Reinstall: {reinstallation_hint()}"
        check = "test_python_files_are_there"
        methods = {check: lambda self: self.fail(reason)}
        failing: unittest.TestCase = type(f"{logical.title()}Test", (unittest.TestCase,), methods)(check)
        return failing


def _is_installed(logical: str) -> bool:
    if logical in ("base", "core"):
        return True
    if logical == "devel":
        names = _build_info.PACKAGES.get("devel")
        return names is not None and find_module(names["module"]) is not None
    return find_root(logical) is not None


class PlainResult(unittest.TestResult):
    """Collects the messages of a check, and prints them at the end of the check."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: list[str] = []
        self._reasons: list[str] = []
        self.counts = {"passed": 0, "failed": 0, "left out": 0}

    def startTest(self, test: unittest.TestCase) -> None:
        """Clear the messages of the previous check."""
        super().startTest(test)
        self._faults, self._reasons = [], []

    def stopTest(self, test: unittest.TestCase) -> None:
        """Print the result of the check, followed by its failures."""
        super().stopTest(test)
        outcome = "failed" if self._faults else "left out" if self._reasons else "passed"
        self.counts[outcome] += 1
        reasons = "; ".join(self._reasons)
        # After a failure, print the failures first, because skipped parts aren't the reason.
        below = [*self._faults, *([f"left out: {reasons}"] if reasons else [])] if self._faults else []
        _print(f"{outcome:8}  {_title(test)}{f': {reasons}' if reasons and not below else ''}")
        for text in below:
            _print("\n".join(f"          {line}" for line in text.splitlines()))

    def addFailure(self, test: unittest.TestCase, err: Error) -> None:
        """Record the reason for a failure."""
        super().addFailure(test, err)
        self._faults.append(str(err[1]))

    def addError(self, test: unittest.TestCase, err: Error) -> None:
        """Record an exception in the same way as a failure."""
        super().addError(test, err)
        self._faults.append(str(err[1]) or type(err[1]).__name__)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Error | None) -> None:
        """Record the failure of one of several libraries or programs."""
        super().addSubTest(test, subtest, err)
        if err:
            self._faults.append(str(err[1]) or type(err[1]).__name__)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """Record the reason why a check, or a part of it, was skipped."""
        super().addSkip(test, reason)
        self._reasons.append(reason)

    def print_sum(self) -> None:
        """Print the numbers of passed, failed, and skipped checks."""
        _print(f"{self.testsRun} checks: {', '.join(f'{count} {outcome}' for outcome, count in self.counts.items())}")


def _title(test: unittest.TestCase) -> str:
    """Return a check's title, such as ``core: public libraries load`` for ``CoreTest.test_public_libraries_load``."""
    package = re.sub("(?<=.)Test$", "", type(test).__name__).lower()
    words = test.id().rpartition(".")[2].split("_")[1:]
    return f"{'all' if package == 'base' else package}: {' '.join(SPELLINGS.get(word, word) for word in words)}"


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{printable(text)}\n".encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
