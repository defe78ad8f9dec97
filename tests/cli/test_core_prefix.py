"""A folder like AMD's ``/opt/rocm`` since ROCm 7.10, from the prefixes to the self test of the installed packages."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from tests.support.command_line import rocwheel
from tests.support.core_prefix import make_extras, make_rocm_folder
from tests.support.environments import make_venv, pip_for
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return packages of ROCm 7.14 and of what is built on it; the folder that they were made of is gone."""
    folder = tmp_path_factory.mktemp("core")
    rocm = make_rocm_folder(folder, "7.14.0")
    prefixes = (rocm / "core", make_extras(rocm, rocm / "core-7.14"))
    imported = rocwheel("artifacts", "import", *prefixes, "--output", folder / "artifacts")
    built = rocwheel("build", "--artifact-dir", folder / "artifacts", "--dest-dir", folder / "packages", "-q")
    assert (imported.returncode, built.returncode) == (0, 0), imported.stderr + built.stderr
    assert "SDK version: 7.14.0" in imported.stdout.splitlines()
    rocm.rename(folder / "away")
    return folder / "packages/dist"


def members(dist: Path, name: str) -> set[str]:
    (wheel,) = dist.glob(f"{name}-7.14.0-*.whl")
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_packages_work_without_the_original_rocm_folder(dist: Path, tmp_path: Path) -> None:
    environment = tmp_path / "env"
    install = [*pip_for(make_venv(environment)), "install", "-q", "--no-index", "--find-links", str(dist)]
    subprocess.run([*install, "rocm[libraries,devel,device-gfx906]"], check=True, capture_output=True)

    def use(word: str, *options: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(environment)}
        command = [str(environment / "bin/rocm-sdk"), word, *options]
        return subprocess.run(command, env=variables, check=False, capture_output=True, text=True)

    tested = use("test")
    assert (tested.returncode, ", 0 failed, " in tested.stdout) == (0, True), tested.stdout
    root = environment / use("path", "--root").stdout.strip()
    for path in (".info/version", "lib/libmigraphx_c.so.3", "lib/migraphx/lib/libmigraphx.so.2", "bin/rvs"):
        assert (root / path).exists(), path


def test_device_code_archives_go_to_the_package_of_their_gpu(dist: Path) -> None:
    packed = {wheel.name.partition("-")[0] for wheel in dist.glob("*.whl")}
    assert {"rocm_sdk_device_gfx906", "rocm_sdk_device_gfx90a", "rocm_sdk_device_gfx1030"} <= packed
    archives = {path for path in members(dist, "rocm_sdk_device_gfx90a") if ".kpack/" in path}
    assert archives == {
        "_rocm_sdk_libraries/.kpack/blas_lib_gfx90a.kpack",
        "_rocm_sdk_libraries/.kpack/blas_lib_gfx90a:xnack+.kpack",
    }
    assert not {path for path in members(dist, "rocm_sdk_libraries") if ".kpack/" in path}
