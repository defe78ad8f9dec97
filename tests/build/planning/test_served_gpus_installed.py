"""GPUs without a package of their own: what pip and uv install for them, and whether that runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.core.reading import join_data
from tests.reference.conftest import new_environment
from tests.support.artifacts import artifact, build_packages
from tests.support.command_line import rocwheel
from tests.support.fat_libraries import build_fat_library, code_of
from tests.support.similar_code import code_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build packages of code for gfx1030, offered to gfx1031, and of generic code for gfx11."""
    folder = tmp_path_factory.mktemp("served")
    codes = {"gfx1030": code_for("gfx1030"), "gfx11-generic": code_of(0, "gfx11-generic")}
    parts = [BundlePart(f"hipv4-amdgcn-amd-amdhsa--{name}", (memoryview(code),)) for name, code in codes.items()]
    bundle = join_data(write_offload_bundle([BundlePart("host-x86_64-unknown-linux--"), *parts]))
    build_fat_library(artifact(folder / "in", "blas_lib_generic") / "lib/librocsparse.so.1", [bundle])
    return build_packages(folder, "--split-device", "--retarget", "gfx1030=gfx1031")[0]


@pytest.mark.parametrize("tool", ["pip", "uv"])
@pytest.mark.parametrize(
    ("gpu", "package", "uses"),
    [
        ("gfx1031", "rocm_sdk_device_gfx1031", "uses gfx1031 in 1 bundle (the same processor"),
        ("gfx1103", "rocm_sdk_device_gfx11_generic", "uses gfx11-generic in 1 bundle (generic code"),
    ],
)
def test_a_gpu_gets_the_package_with_code_that_runs_on_the_gpu(
    dist: Path, tmp_path: Path, tool: str, gpu: str, package: str, uses: str
) -> None:
    environment = new_environment(tmp_path / "environment", dist, tool)
    environment.install("rocm[libraries,device]", ROCM_SDK_TARGET_FAMILY=gpu)
    assert [name for name in environment.dists() if "device" in name] == [package]
    done = rocwheel("targets", "runs-on", gpu, environment.site, "--rocm", "7.14")
    assert done.returncode == 0, done.stdout
    [line] = [line for line in done.stdout.splitlines() if "librocsparse.so.1: " in line and "a stock runtime" in line]
    assert uses in line


def test_a_gpu_that_no_package_serves_is_refused(dist: Path, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "environment", dist)
    done = environment.install("rocm[libraries,device]", check=False, ROCM_SDK_TARGET_FAMILY="gfx1201")
    assert done.returncode != 0
    assert "gfx1201" in done.stderr
    assert environment.dists() == []
