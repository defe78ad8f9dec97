"""Tests of `rocwheel.frameworks.jax.commands`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.commands import BuildOptions, render_makefile
from rocwheel.frameworks.jax.settings import BazelSettings

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

SETTINGS = BazelSettings(1, "gcc", ("3.11", "3.12"), (), commits={"jax": "abcdef0"}, wheel_sources=("a $b's.txt",))
PJRT = ["bazel", "build", "--config=rocm_build", "--config=python311", "//pjrt:pjrt_c_api_gpu_plugin.so"]
MODULES = "//jaxlib_ext/tools:build_gpu_kernels_wheel"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a Makefile, a commit, and programs that print how they are called."""
    if shutil.which("make") is None or shutil.which("git") is None:
        pytest.skip("no make or git")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "init", "-q", tmp_path], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    for name in ("bazel", "rocwheel", "other bazel"):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps([{name!r}, *sys.argv[1:]]))\n")
        program.chmod(0o755)
    options = BuildOptions("0.12.0", dest_dir="wheel $house #1", bazel_options=("--copt=-DX=a b",))
    (tmp_path / "Makefile").write_text(render_makefile(SETTINGS, options))
    return tmp_path


def make(folder: Path, *arguments: str) -> list[list[str]]:
    """Return how the programs were called."""
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(
        ["make", "-s", *arguments], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def kinds(calls: list[list[str]]) -> list[str]:
    return [f"bazel {call[-1]}" if call[0] == "bazel" else " ".join(call[2:6]) for call in calls]


PJRT_STEPS = ["bazel //pjrt:pjrt_c_api_gpu_plugin.so", "wheel pjrt --version 0.12.0"]
STEPS_311 = [f"bazel {MODULES}", "wheel plugin --python-version 3.11"]
STEPS_312 = [f"bazel {MODULES}", "wheel plugin --python-version 3.12"]


@pytest.mark.parametrize(
    ("targets", "steps"),
    [
        ([], PJRT_STEPS + STEPS_311 + STEPS_312),
        (["wheels"], PJRT_STEPS + STEPS_311 + STEPS_312),
        (["-j8", "wheels"], PJRT_STEPS + STEPS_311 + STEPS_312),
        (["jax-rocm-pjrt"], PJRT_STEPS),
        (["jax-rocm-plugin"], STEPS_311 + STEPS_312),
        (["jax-rocm-plugin-3.12"], STEPS_312),
        (["PYTHON_VERSIONS=3.12", "jax-rocm-plugin"], STEPS_312),
    ],
)
def test_each_wheel_has_a_make_target(targets: list[str], steps: list[str], folder: Path) -> None:
    calls = make(folder, *targets)
    assert [step.removeprefix("jax ") for step in kinds(calls)] == steps


def test_every_word_is_passed_to_the_command_unchanged(folder: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    bazel, assembly = make(folder, "jax-rocm-pjrt")
    assert bazel == [*PJRT[:-1], "--copt=-DX=a b", PJRT[-1]]
    assert assembly == [
        *("rocwheel", "jax", "wheel", "pjrt", "--version", "0.12.0", "--rocm", "7", "--src", "bazel-bin"),
        *("--src", "a $b's.txt", "--commit", f"ROCm/rocm-jax={head.stdout.strip()}", "--commit", "jax=abcdef0"),
        *("--output", "wheel $house #1"),
    ]


def test_make_variables_can_be_overridden(folder: Path) -> None:
    given = ["VERSION=0.13", "SDK=packages/dist", "DEST_DIR=out", "CONFIG=rocm_build_remote"]
    bazel, assembly = make(
        folder, *given, "BAZEL='other bazel' --batch", "BAZEL_OPTIONS=--jobs=2 --keep_going", "jax-rocm-pjrt"
    )
    assert bazel == [
        *("other bazel", "--batch", "build", "--config=rocm_build_remote", "--config=python311"),
        *("--jobs=2", "--keep_going", "//pjrt:pjrt_c_api_gpu_plugin.so"),
    ]
    assert assembly[4:6] == ["--version", "0.13"]
    assert assembly[-4:] == ["--with", "packages/dist", "--output", "out"]


def test_environment_variables_do_not_change_the_make_variables(folder: Path) -> None:
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "VERSION": "9", "SDK": "x"}
    done = subprocess.run(
        ["make", "-n", "jax-rocm-pjrt"], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    assert "--version 0.12.0" in done.stdout
    assert "--with" not in done.stdout


def test_a_failed_build_stops_make_before_the_assembly(folder: Path) -> None:
    (folder / "bazel").write_text("#!/bin/sh\nexit 3\n")
    done = subprocess.run(
        ["make", "wheels"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )
    assert done.returncode == 2
    assert '["rocwheel"' not in done.stdout


def test_a_makefile_for_one_kind_of_wheel_has_only_that_target() -> None:
    text = render_makefile(SETTINGS, BuildOptions("1", kinds=("pjrt",)))
    assert ".PHONY: wheels jax-rocm-pjrt\n" in text
    assert "\njax-rocm-plugin" not in text


def test_an_invalid_version_is_refused() -> None:
    with pytest.raises(InputError, match="--version: is 'x'"):
        render_makefile(SETTINGS, BuildOptions("x"))
