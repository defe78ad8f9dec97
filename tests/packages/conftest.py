"""The sample SDK, built once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from rocwheel.packages.job import BuildJob, PlanJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def sample_dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the packages of the sample SDK."""
    dest = tmp_path_factory.mktemp("sample")
    BuildJob(PlanJob(SAMPLE_SDK), dest).run()
    return dest / "dist"
