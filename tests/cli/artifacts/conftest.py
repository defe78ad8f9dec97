"""What several commands' tests read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    for name, size in (("blas_lib_generic", 1234567), ("blas_lib_gfx90a:xnack+", 10), ("blas_dev_generic", 1)):
        stage = folder / name / "math/stage/lib"
        stage.mkdir(parents=True)
        (folder / name / "artifact_manifest.txt").write_text("math/stage\n")
        (stage / "x").write_bytes(os.urandom(size))
        (stage / "y").symlink_to("x")
    return folder
