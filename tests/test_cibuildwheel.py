"""The settings that the documentation gives for cibuildwheel, as cibuildwheel itself reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cibuildwheel.options import CommandLineArguments, Options
from cibuildwheel.util.helpers import prepare_command

from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.places import ROOT
from tests.support.run_paths import run_paths
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.slow

CORE = "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"
_ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
SETTINGS = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        (SETTINGS[0], "rocwheel repair {wheel} --output {dest_dir}"),
        (SETTINGS[1], "rocwheel repair {wheel} --output {dest_dir} && rocwheel audit {dest_dir}"),
    ],
    ids=["repair", "repair and audit"],
)
def test_the_repair_command_is_read_from_the_config_and_leaves_one_wheel(
    tmp_path: Path, sample_dist: Path, settings: str, command: str
) -> None:
    # Given a project with the settings
    options = _read(tmp_path, settings)
    assert (options.before_build, options.repair_command) == ("pip install rocwheel", command)
    # When cibuildwheel runs the repair as it does, by a shell, on a built wheel
    prepared = prepare_command(options.repair_command, wheel=sample_dist / CORE, dest_dir=tmp_path / "repaired")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", prepared],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )
    # Then the folder has one wheel, which is what cibuildwheel asks for
    assert (done.returncode, done.stderr) == (0, "")
    assert [found.name for found in (tmp_path / "repaired").iterdir()] == [CORE]


def test_auditwheel_runs_first_if_it_copies_other_libraries(tmp_path: Path) -> None:
    options = _read(tmp_path, SETTINGS[2])
    assert options.repair_command == (
        "auditwheel repair --exclude 'libamdhip64.so.*' --exclude 'librocblas.so.*' -w /tmp/copied {wheel} && "
        "rocwheel repair /tmp/copied/*.whl --output {dest_dir}"
    )


@needs_compiler
def test_both_repairs_succeed_with_auditwheel_first_and_fail_with_rocwheel_first(
    tmp_path: Path, sample_dist: Path
) -> None:
    # Given a wheel whose library needs ROCm and a library of its own project, which is outside the wheel
    tree = build_tree(
        tmp_path / "libraries",
        Lib("libamdhip64.so.7"),
        Lib("libother.so.1"),
        Lib("libfast.so", needed=("libamdhip64.so.7", "libother.so.1")),
    )
    wheel = make_wheel(tmp_path / "built", "fast", {"fast/__init__.py": b"", "fast/libfast.so": tree / "libfast.so"})

    # When auditwheel is first, rocwheel repairs what it has written
    assert _run_auditwheel(wheel, tmp_path / "copied", tree) == 0
    assert _run_repair(tmp_path / "copied", tmp_path / "repaired", sample_dist) == 0

    # Then the library finds both, and with rocwheel first the repair reports the library that nothing provides
    (repaired,) = (tmp_path / "repaired").iterdir()
    with zipfile.ZipFile(repaired) as opened:
        assert run_paths(opened.read("fast/libfast.so"))[0] == "$ORIGIN/../fast.libs:$ORIGIN/../_rocm_sdk_core/lib"
    assert _run_repair(wheel, tmp_path / "first", sample_dist) == 1


def _run_auditwheel(wheel: Path, output: Path, libraries: Path) -> int:
    command = [
        sys.executable,
        "-m",
        "auditwheel",
        "repair",
        "--exclude",
        "libamdhip64.so.*",
        "-w",
        str(output),
        str(wheel),
    ]
    environment = {**_ENVIRONMENT, "LD_LIBRARY_PATH": str(libraries)}
    return subprocess.run(command, capture_output=True, check=False, env=environment).returncode


def _run_repair(wheel: Path, output: Path, sdk: Path) -> int:
    command = [sys.executable, "-m", "rocwheel", "repair", str(wheel), "--output", str(output), "--with", str(sdk)]
    return subprocess.run(command, capture_output=True, check=False, env=_ENVIRONMENT).returncode


def _read(project: Path, settings: str) -> Any:
    """Return the options that cibuildwheel takes from the ``pyproject.toml`` with ``settings``."""
    (project / "pyproject.toml").write_text(settings)
    arguments = CommandLineArguments.defaults()
    arguments.package_dir = project
    return Options(platform="linux", command_line_arguments=arguments, env={}).build_options(None)
