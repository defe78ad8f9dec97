"""What a build leaves, for wheels to be made of."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.frameworks.wheels import HIP, make_outputs

if TYPE_CHECKING:
    from tests.frameworks.conftest import Compile


@pytest.fixture(scope="session")
def hip(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the HIP library of the sample SDK, taken out of its wheel."""
    folder = tmp_path_factory.mktemp("hip")
    (core,) = sample_dist.glob("rocm_sdk_core-*.whl")
    with zipfile.ZipFile(core) as archive:
        return Path(archive.extract(HIP, folder))


@pytest.fixture
def outputs(tmp_path: Path, compile_library: Compile, hip: Path) -> Path:
    """Return the folder of what a small Bazel build of JAX leaves."""
    return make_outputs(tmp_path / "bazel-bin", compile_library, hip)
