"""The sample SDK, built once and installed once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def sample_dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the packages of the sample SDK."""
    dest = tmp_path_factory.mktemp("audited")
    BuildJob(PlanJob(SAMPLE_SDK), dest).run()
    return dest / "dist"


@pytest.fixture(scope="session")
def installed_sample(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the wheels of the sample SDK are installed in, as in site-packages."""
    target = tmp_path_factory.mktemp("site-packages")
    wheels = sorted(map(str, sample_dist.glob("*.whl")))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*pip, *wheels], check=True)
    return target
