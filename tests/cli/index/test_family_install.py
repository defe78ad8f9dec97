"""A build per family, indexed and installed by the commands that are printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK

pytestmark = pytest.mark.slow

_FOREIGN = ("PIP_", "UV_", "ROCM_", "HSA_")
_STEP = re.compile(r"^for (?P<family>\w+), \d+ projects: (?P<command>.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def dist_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a build of the sample SDK for three families, below one with a blank in its name."""
    folder = tmp_path_factory.mktemp("per family")
    default = (SAMPLE_SDK.parent / "build/rocm.toml").read_text(encoding="utf-8")
    recipe = folder / "family.toml"
    recipe.write_text(default.replace("schema = 1", 'schema = 1\nlayout = "per-family"'), encoding="utf-8")
    BuildJob(PlanJob(SAMPLE_SDK, recipe), folder).run()
    return folder / "dist"


def shell(command: str, folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env={**kept, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("tool", "family"), [("pip", "gfx906"), ("uv pip", "gfx1030")])
def test_the_printed_command_installs_the_family_and_nothing_of_others(
    dist_dir: Path, tmp_path: Path, tool: str, family: str
) -> None:
    steps = {
        found["family"]: found["command"] for found in _STEP.finditer(shell("rocwheel index dist", dist_dir.parent))
    }
    assert list(steps) == ["gfx1030", "gfx906", "gfx90a"]
    copied = steps[family].replace("pip install", f"{tool} install --target {shlex.quote(str(tmp_path / 'site'))}")
    shell(copied.replace("PROJECT", '"rocm[libraries,devel]"'), tmp_path)
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "site").glob("*.dist-info")) == [
        "rocm",
        "rocm_sdk_core",
        "rocm_sdk_devel",
        f"rocm_sdk_libraries_{family}",
    ]
    program = "from rocm_sdk._dist_info import INSTALLED_FAMILIES; print(*INSTALLED_FAMILIES)"
    site = {"PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run([sys.executable, "-c", program], env=site, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [family]
