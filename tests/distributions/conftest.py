"""The tools of others that the tests of distributions ask."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[[Sequence["str | Path"]], "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def run_tool() -> Run:
    """Give a function that runs a tool to its end, skipping where the tool is absent."""

    def run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[bytes]:
        if shutil.which(command[0]) is None:
            pytest.skip(f"no {command[0]}; scripts/install-debian-packages.sh installs it")
        return subprocess.run(command, check=False, capture_output=True)

    return run
