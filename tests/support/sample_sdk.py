"""The sample SDK, built once and installed once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index.write_index import write_index

__all__ = ["installed_sample", "installed_windows_sample", "sample_dist"]


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


@pytest.fixture(scope="session")
def installed_windows_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that uv has installed the packages of the sample SDK for Windows in, as on Windows."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        pytest.skip("needs uv")
    dest = tmp_path_factory.mktemp("for windows")
    BuildJob(PlanJob(SAMPLE_SDK / "windows"), dest).run()
    write_index(dest / "dist", dest / "simple")
    command = [uv, "pip", "install", "--quiet", "--python-platform", "x86_64-pc-windows-msvc"]
    command += ["--target", str(dest / "site"), "--index-url", (dest / "simple").as_uri()]
    variables = {**os.environ, "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1"}
    subprocess.run([*command, "rocm[libraries,devel,device-gfx1030]"], env=variables, check=True)
    return dest / "site"
