"""Debian's real ROCm packages become packages that install and work; the long run of examples/debian."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RUN = ROOT / "examples/debian/run.sh"
NEEDED = ("apt-get", "cmake", "g++", "perl")
MISSING = [tool for tool in NEEDED if shutil.which(tool) is None]


@pytest.mark.corpus
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_debian_packages_become_a_working_sdk(tmp_path: Path) -> None:
    finished = subprocess.run(
        ["bash", RUN, tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )

    assert finished.returncode == 0, finished.stdout[-5000:]
    assert "All of it works." in finished.stdout
