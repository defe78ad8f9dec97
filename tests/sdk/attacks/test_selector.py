"""The build of the ``rocm`` sdist in hostile surroundings: it runs its own code, and no program to find GPUs.

What pip and uv import themselves is theirs. A build uses the sdist's own modules and Python's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.sdk.attacks.planted import Planted, plant
from tests.sdk.installed import BIN
from tests.support.environments import pip_for
from tests.support.sdists import unpack_tar

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow

BACKEND = """
import os, sys
marks, source, out = sys.argv[1:]
sys.path[:0] = [source, os.path.join(source, "src")]
os.chdir(source)
import selector
opened = []
sys.addaudithook(lambda event, a: opened.append((event, str(a[0]))) if event in WATCHED else None)
WATCHED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "ctypes.dlopen", "socket.connect")
selector.build_wheel(out)
print(opened)
"""


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc (Debian package build-essential)")
    return plant(tmp_path)


def unpack(dist: Path, folder: Path) -> Path:
    (sdist,) = dist.glob("rocm-*.tar.gz")
    with tarfile.open(sdist) as archive:
        unpack_tar(archive, folder)
    return folder / sdist.name.removesuffix(".tar.gz")


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_build_runs_nothing_from_the_folder_beside_the_sdist(
    make_set: MakeSet, make_environment: MakeEnvironment, planted: Planted, tool: str
) -> None:
    # Given an sdist among planted modules, in a working directory of those, with "." on PATH
    environment = make_environment(make_set())
    source = unpack(make_set(), planted.folder)
    pip = pip_for(environment.python) if tool == "pip" else [str(BIN / "uv"), "pip"]
    where = [] if tool == "pip" else ["--python", str(environment.python)]
    options = ["install", "--no-index", "--find-links", str(make_set()), str(source), *where]
    paths = {"PATH": ".:/usr/bin:/bin", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
    done = subprocess.run(
        [*pip, *options],
        cwd=planted.folder,
        env={**paths, "HOME": str(planted.marks), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert planted.ran() == []
    assert environment.dists() == ["rocm", "rocm_sdk_core"]


def test_the_backend_starts_no_program_and_loads_no_library(
    make_set: MakeSet, make_environment: MakeEnvironment, planted: Planted, tmp_path: Path
) -> None:
    environment = make_environment(make_set())
    source = unpack(make_set(), tmp_path / "unpacked")
    command = [str(environment.python), "-I", "-c", BACKEND, str(planted.marks), str(source), str(tmp_path)]
    done = subprocess.run(
        command, env={"PATH": str(planted.folder)}, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert [path.name for path in tmp_path.glob("*.whl")] == ["rocm-7.2.0-py3-none-any.whl"]
    assert planted.ran() == []
