"""The sample SDK as packages, and a compiler that makes libraries for wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.frameworks.wheels import HIP, make_outputs
from tests.support.environments import make_venv, pip_for

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def rocm_path(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of an installed SDK, as a builder has it."""
    environment = tmp_path_factory.mktemp("builder")
    pip = [
        *pip_for(make_venv(environment)),
        "install",
        "-q",
        "--no-index",
        "--find-links",
        str(sample_dist),
        "rocm[devel]",
    ]
    subprocess.run(pip, check=True, env={"PIP_CONFIG_FILE": os.devnull})
    tool = [str(environment / "bin/rocm-sdk"), "path", "--root"]
    return Path(subprocess.run(tool, check=True, capture_output=True, text=True).stdout.strip())


@pytest.fixture(scope="session")
def compile_library() -> Compile:
    """Give a function that compiles C to a shared library and returns its path."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc; scripts/install-debian-packages.sh installs a compiler")

    def compile_text(path: Path, text: str, *options: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(path), *options]
        subprocess.run(command, input=text, text=True, check=True, capture_output=True)
        return path

    return compile_text


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
