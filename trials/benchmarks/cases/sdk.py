"""What users of packages wait for: installers, and ``rocm-sdk init``."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING

from trials.benchmarks.cases.case import PYTHON, Case, Words, floor, rocwheel, tool
from trials.benchmarks.cases.trees import make_artifacts

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CASES"]

_FILES = (1, 1_000, 2_000, 4_000, 8_000)


def _make_packages(folder: Path, size: int) -> None:
    make_artifacts(folder, size)
    options = ("--selector", "wheel", "--version", "7.0.0", "--no-cache", "-d", folder / "packages")
    _quietly(rocwheel("build", "--artifact-dir", folder / "artifacts", *options))


def _make_core(folder: Path, size: int) -> None:
    """Build packages with the files in the core package, where users have them at once."""
    (folder / "made").mkdir()
    make_artifacts(folder / "made", size)
    many = folder / "made/artifacts/base_dev_generic/stage/include"
    many.rename(folder / "made/artifacts/base_lib_generic/stage/share")
    artifacts = (folder / "made/artifacts").rename(folder / "made/moved")
    options = ("--selector", "wheel", "--version", "7.0.0", "--no-cache", "-d", folder / "packages")
    _quietly(rocwheel("build", "--artifact-dir", artifacts, *options))


def _make_installed(folder: Path, size: int) -> None:
    """Unpack all packages into one folder, as installers do."""
    _make_packages(folder, size)
    for path in (folder / "packages/dist").glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder / "site")


def _quietly(words: Words) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _install(folder: Path, out: Path) -> None:
    shutil.copytree(folder / "site", out / "site", symlinks=True)


def _core(folder: Path) -> Path:
    return next((folder / "packages/dist").glob("rocm_sdk_core*.whl"))


def _init(_: Path, out: Path) -> Words:
    return ("env", f"PYTHONPATH={out / 'site'}", PYTHON, "-P", "-m", "rocm_sdk", "init")


CASES = (
    Case(
        "pip install", "files in the core package", _FILES, _make_core,
        lambda folder, out: (
            PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--ignore-installed",
            "--prefix", str(out / "env"), str(_core(folder))),
        lambda folder, out: floor("unzip", _core(folder), out),
        {"uv pip install": lambda folder, out: tool(
            "uv", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache", "--target", out / "env",
            _core(folder))},
    ),
    Case(
        "rocm-sdk init", "files in the devel package", _FILES, _make_installed, _init,
        lambda folder, out: floor("untar", folder / "site/rocm_sdk_devel/_devel.tar", out),
        prepare=_install,
    ),
)  # fmt: skip
"""After packages are published."""
