"""``pip install rocm``, where the recipe makes `rocm` always require the packages of this machine's GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.recipe import load_recipe
from rocwheel.demo import SAMPLE_SDK
from tests.build.merging.test_installers import dists, find_uv
from tests.support.command_line import rocwheel
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def write_recipe(path: Path, requires: str) -> str:
    text = (ROOT / "src/rocwheel/build/rocm.toml").read_text()
    changed, number = re.subn(r'(\[selector\]\n(?:.+\n)*?requires = )\["core"\]', rf"\g<1>{requires}", text)
    assert number == 1
    path.write_text(changed)
    load_recipe(path)
    return str(path)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    recipe = write_recipe(folder / "recipe.toml", '["core", "libraries", "device"]')
    done = rocwheel("build", str(SAMPLE_SDK), "--recipe", recipe, "-d", str(folder), "-q")
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "dist"


def install(tool: str, dist: Path, site: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [find_uv(), "pip"] if tool == "uv" else [sys.executable, "-m", "pip"]
    words = ["install", "rocm", "--target", str(site), "--no-index", "--find-links", str(dist)]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(site), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1", **environ}
    return subprocess.run([*command, *words], env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tool", ["pip", "uv"])
@pytest.mark.parametrize(
    "variables", [{"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx90a"}, {"ROCM_SDK_TARGET_FAMILY": "gfx90a"}], ids=str
)
def test_the_plain_requirement_installs_the_code_for_the_gpu(
    tool: str, variables: dict[str, str], dist: Path, tmp_path: Path
) -> None:
    done = install(tool, dist, tmp_path / "site", **variables)
    assert done.returncode == 0, done.stderr
    assert dists(tmp_path / "site") == ["rocm", "rocm_sdk_core", "rocm_sdk_device_gfx90a", "rocm_sdk_libraries"]


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_machine_without_a_gpu_is_told_which_variable_to_set(tool: str, dist: Path, tmp_path: Path) -> None:
    done = install(tool, dist, tmp_path / "site", HSA_VISIBLE_DEVICES="")
    assert done.returncode != 0
    assert (
        "rocm: no AMD GPU was found. Set ROCM_SDK_TARGET_FAMILY to the GPUs that will run ROCm 7.0.0, and install "
        "again. Available: gfx906, gfx90a, gfx1030."
    ) in done.stderr
    assert dists(tmp_path / "site") == []


def test_a_lock_file_contains_the_code_for_the_gpus_of_a_cluster(dist: Path, tmp_path: Path) -> None:
    command = [
        find_uv(),
        "pip",
        "compile",
        "-",
        "--no-index",
        "--find-links",
        str(dist),
        "--no-header",
        "--no-annotate",
    ]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ROCM_SDK_TARGET_FAMILY": "gfx906,gfx1030"}
    done = subprocess.run(command, input="rocm", env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        "rocm==7.0.0",
        "rocm-sdk-core==7.0.0",
        "rocm-sdk-device-gfx1030==7.0.0",
        "rocm-sdk-device-gfx906==7.0.0",
        "rocm-sdk-libraries==7.0.0",
    ]


@pytest.mark.parametrize(
    ("requires", "options", "expected"),
    [
        ('["core", "device"]', ["--selector", "wheel"], "--selector sdist, because a wheel can't choose a package"),
        ('["device"]', [], "a package for all GPUs before that package"),
    ],
)
def test_a_selector_that_could_not_be_installed_is_not_built(
    requires: str, options: list[str], expected: str, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", requires)
    done = rocwheel("build", str(SAMPLE_SDK), "--recipe", recipe, "-d", str(tmp_path / "out"), "-q", *options)
    found = "rocm: requires: requires rocm-sdk-device-{family}==7.0.0, which depends on the GPU"
    remedy = "Correct [selector] in the recipe."
    assert (done.returncode, done.stderr) == (2, f"error: {found}; expected {expected}. {remedy}\n")
    assert not (tmp_path / "out/dist").exists()
