"""The example workspace with the files that rocwheel writes for it, and real Bazel to build it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.bazel import STARTUP
from tests.support.command_line import rocwheel
from tests.support.places import ROOT

__all__ = ["EXAMPLE", "NEEDS_BAZEL", "ROOT", "Workspace", "build_wheels", "make_workspace"]

EXAMPLE = ROOT / "examples/bazel"
VERSION = "0.12.0"
NEEDS_BAZEL = [
    pytest.mark.skipif(shutil.which("bazel") is None, reason="no bazel: install Debian's bazel-bootstrap"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64"),
]


class Workspace(msgspec.Struct, frozen=True):
    """A copy of the example with everything written, and an output root of its own."""

    folder: Path
    output_root: Path
    sample_dist: Path

    def rocwheel(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run rocwheel in the workspace."""
        return rocwheel(*arguments, cwd=self.folder)

    def bazel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Bazel with an environment that holds next to nothing."""
        command = ["bazel", f"--output_user_root={self.output_root}", *STARTUP, *arguments]
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder.parent)}
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, env=variables)

    def build(self, *arguments: str) -> None:
        """Build with Bazel, which has to succeed."""
        finished = self.bazel("build", *arguments)
        assert finished.returncode == 0, finished.stderr

    def wheel(self, kind: str, dest: Path, *options: str) -> Path:
        """Assemble a wheel of JAX and return its path."""
        sources = ("--src", "bazel-bin", "--src", "LICENSE", "--src", "pjrt/python/__init__.py")
        commit = "ROCm/rocm-jax=0123456789abcdef"
        beside = ("--with", self.sample_dist, "--output", dest, "--commit", commit)
        made = self.rocwheel("jax", "wheel", kind, "--version", VERSION, *sources, *beside, *options)
        assert made.returncode == 0, made.stderr
        return Path(made.stdout.strip())


def make_workspace(folder: Path, sample_dist: Path, rocm_path: Path, *options: str) -> Workspace:
    """Copy the example and have rocwheel write its files; ``options`` are those of ``rocwheel jax starlark``."""
    shutil.copytree(EXAMPLE, folder / "source")
    (folder / "source/sdk").mkdir()
    for wheel in sample_dist.glob("rocm_sdk_core-*.whl"):
        shutil.copy(wheel, folder / "source/sdk")
    workspace = Workspace(folder / "source", folder / "bazel", sample_dist)
    for arguments in (["bazelrc", "--output", "rocm.bazelrc"], ["starlark", "rocm_wheel", *options]):
        written = workspace.rocwheel("jax", *arguments)
        assert written.returncode == 0, written.stderr
    user = f"build --repo_env=ROCM_PATH={rocm_path}\nbuild --repo_env=ROCWHEEL_PYTHON={sys.executable}\n"
    (workspace.folder / ".bazelrc.user").write_text(user)
    return workspace


def build_wheels(workspace: Workspace, dest: Path) -> list[Path]:
    """Build the plugin and the extension module for three Pythons, and assemble the four wheels."""
    workspace.build("--config=rocm_build", "--config=python311", "//pjrt:pjrt_c_api_gpu_plugin.so")
    wheels = [workspace.wheel("pjrt", dest)]
    for python in ("3.11", "3.12", "3.13"):
        config = "--config=python" + python.replace(".", "")
        workspace.build("--config=rocm_build", config, "//example:_example.so")
        wheels.append(workspace.wheel("plugin", dest, "--python-version", python, "--spec", "plugin.toml"))
    return wheels
