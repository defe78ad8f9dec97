"""The settings that the documentation gives for cibuildwheel, as cibuildwheel itself reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cibuildwheel.options import CommandLineArguments, Options
from cibuildwheel.util.helpers import prepare_command

from tests.support.places import ROOT

pytestmark = pytest.mark.slow

CORE = "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"
SETTINGS = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        (SETTINGS[0], "rocwheel repair {wheel} --dest-dir {dest_dir}"),
        (SETTINGS[1], "rocwheel repair {wheel} --dest-dir {dest_dir} && rocwheel audit {dest_dir}"),
    ],
    ids=["repair", "repair and audit"],
)
def test_the_repair_command_is_read_and_leaves_one_wheel(
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


def test_auditwheel_goes_first_where_it_copies_other_libraries(tmp_path: Path) -> None:
    options = _read(tmp_path, SETTINGS[2])
    assert options.repair_command == (
        "auditwheel repair --exclude 'libamdhip64.so.*' --exclude 'librocblas.so.*' -w /tmp/copied {wheel} && "
        "rocwheel repair /tmp/copied/*.whl --dest-dir {dest_dir}"
    )


def _read(project: Path, settings: str) -> Any:
    """Return the options that cibuildwheel takes from the ``pyproject.toml`` with ``settings``."""
    (project / "pyproject.toml").write_text(settings)
    arguments = CommandLineArguments.defaults()
    arguments.package_dir = project
    return Options(platform="linux", command_line_arguments=arguments, env={}).build_options(None)
