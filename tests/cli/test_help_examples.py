"""The example in the help of every command runs, as written, in a folder that has what its words name."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.commands import COMMANDS
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

ELSEWHERE = {
    "artifacts fetch": "a bucket of others",
    "artifacts merge": "builds of two families, of which tests/artifacts has some",
    "device bundle": "code objects for two GPUs, of which tests/device has some",
    "demo": "it takes a minute, and tests/demo runs it",
    "jax bazelrc": "tests/docs runs the tutorial that has it",
    "jax commands": "tests/docs runs the tutorial that has it",
    "jax migrate": "checkouts of two projects",
    "jax patch": "a checkout of JAX, which tests/frameworks/jax stands in for",
    "jax wheel": "what Bazel builds",
    "jax wheel-binary": "what Bazel builds",
    "jax wheel-targets": "tests/docs runs the tutorial that has it",
    "promote": "a release candidate, of which tests/build/promoting has some",
    "selector merge": "builds of two systems, of which tests/build/merging has some",
    "torch runpath": "a source tree that python -m build builds",
    "wheel": "what Bazel builds",
}
"""Examples that need what no test folder has, and what that is."""

REPLACED = {
    "/opt/rocm/core": "prefix",
    "/opt/rocm": "prefix",
    "--rocm_path=prefix": "--rocm_path=$PWD/prefix",
    "--output artifacts": "--output made/$$",
    "packages/dist/rocm-7.0.0.tar.gz": "old/dist/rocm-7.0.0.tar.gz",
    "https://host/simple": "file://$PWD/packages/simple",
    "s3://my-bucket/rocm": "bucket",
    "/tmp/rocwheel-demo": "demo",
    "blas_lib_gfx942": "blas_lib_gfx906",
    "gfx906:xnack-": "gfx906",
    "gfx90a:xnack-": "gfx906",
    "gfx1100 --output mirror": "gfx1030 --output mirror",
    "rocm[libraries,device-gfx942]": "rocm[libraries]",
    "file://$PWD/mirror/simple -o mirror/": "file://$PWD/packages/simple -o ",
    "pip install": "true",
    "split/gfx906 split/gfx90a": "split/gfx1030",
    "--targets gfx906,gfx90a --output split": "--targets gfx1030 --output split-again",
    "--targets gfx90a,gfx1100": "",
    "--targets gfx90a,gfx1030": "--targets gfx1030",
}
"""Places of others, and targets that the files of this folder lack, by what this folder has in their stead."""

FINDINGS = {"audit", "targets coherent", "targets runs-on", "diff"}
"""Commands that end with 1 where they find something."""


def example_of(command: str) -> str:
    """Return the lines of a shell."""
    return inspect.cleandoc(COMMANDS[command].help).partition("Example: ")[2].strip()


def replaced(text: str) -> str:
    for old, new in REPLACED.items():
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the examples name."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(SAMPLE_SDK, folder / "artifacts", ignore=shutil.ignore_patterns("windows"))
    (folder / "torch").mkdir()
    rocwheel(folder, "rocwheel build --artifact-dir artifacts --dest-dir packages --quiet")
    shutil.copytree(folder / "packages/dist", folder / "dist")
    for name in ("old", "new"):
        shutil.copytree(folder / "packages", folder / name)
    for name in ("old", "packages"):
        rocwheel(folder, f"rocwheel index {name}/dist --quiet")
    for name in ("librocsparse.so", "lib/librocsparse.so", "lib/librocsparse.so.1", "prefix/lib/librocsparse.so"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / "v22/libtwo.plain.so", folder / name)
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", folder / "prefix/lib/libamdhip64.so.7")
    (folder / "prefix/.info").mkdir()
    (folder / "prefix/.info/version").write_text("7.0.0\n")
    shutil.copy(folder / "librocsparse.so", folder / "_ext.so")
    rocwheel(folder, "rocwheel artifacts archive artifacts/ --output archives/ blas_lib_gfx906 --quiet")
    rocwheel(folder, "rocwheel device split prefix --targets gfx1030 --output split --quiet")
    rocwheel(folder, "rocwheel device extract librocsparse.so --output code --quiet")
    return folder


def rocwheel(folder: Path, line: str, environ: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which ``rocwheel`` is this one."""
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={**environ, **paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_skipped_examples_belong_to_existing_commands() -> None:
    assert set(ELSEWHERE) <= set(COMMANDS)
    assert set(COMMANDS) >= FINDINGS


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(ELSEWHERE)))
def test_the_example_of_a_command_runs(world: Path, command: str) -> None:
    line = replaced(example_of(command))
    done = rocwheel(world, line)
    assert "Traceback" not in done.stderr
    assert done.returncode in ((0, 1) if command in FINDINGS else (0,)), (
        f"{line}\n{done.stdout[-500:]}{done.stderr[-1000:]}"
    )
