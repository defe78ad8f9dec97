"""Self tests of an installation: ``rocm-sdk test``. They pass without a GPU, and say what they left out."""

from __future__ import annotations

import unittest
from importlib import import_module

from .. import _build_info
from .._installing import reinstallation_hint
from .._packages import find_module, find_root
from ._lines import PlainResult, print_absent

__all__ = ["run_tests"]


def run_tests() -> int:
    """Run the tests of all packages that are installed and return the exit status."""
    result = PlainResult()
    for logical in ("base", "core", "libraries", "devel", "profiler"):
        if _is_installed(logical):
            _load(logical).run(result)
        else:
            print_absent(logical)
    result.print_sum()
    return 0 if result.wasSuccessful() else 1


def _load(logical: str) -> unittest.TestCase | unittest.TestSuite:
    """Return the checks of a package, or one that fails when files of ``rocm_sdk`` that they import are gone."""
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
