"""Device code that compilers and hands made, and the tools of others that read it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

Fixture = Callable[[str], memoryview]
Run = Callable[[Sequence[str]], str]


@pytest.fixture(scope="session")
def fixture() -> Fixture:
    """Return a function that reads a fixture file."""
    return lambda name: memoryview((FIXTURES / name).read_bytes())


@pytest.fixture(scope="session")
def fixture_path() -> Callable[[str], Path]:
    """Return a function that returns the path of a fixture file."""
    return lambda name: FIXTURES / name


@pytest.fixture(scope="session")
def run_tool() -> Run:
    """Return a function that runs a tool and returns its output, skipping where the tool is absent."""

    def run(command: Sequence[str]) -> str:
        if shutil.which(command[0]) is None:
            pytest.skip(f"no {command[0]}; scripts/install-debian-packages.sh installs it")
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return run
