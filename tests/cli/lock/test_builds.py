"""A lock file with an sdist that setuptools builds, as the selectors of AMD: from a mirror, without a network."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.pylock import Pylock

from rocwheel.index.write_index import write_index
from tests.cli.lock.test_installers import environment, find_uv, install_pip_26, offline
from tests.support.command_line import rocwheel
from tests.support.sdists import write_sdist
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
__all__ = ["environment", "offline"]

SETUP = """\
import os
from setuptools import setup

target = os.environ.get("ROCM_SDK_TARGET_FAMILY", "gfx1201")
setup(name="rocm", version="7.0.0", install_requires=["rocm-sdk-core==7.0.0"], py_modules=[],
      extras_require={"device": [f"rocm-sdk-device-{target}==7.0.0"]})
"""
PYPROJECT = '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
INFO = "Metadata-Version: 2.1\nName: rocm\nVersion: 7.0.0\nProvides-Extra: device\n"
REQUIRES_TXT = "rocm-sdk-core==7.0.0\n\n[device]\nrocm-sdk-device-gfx1100==7.0.0\n"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of a selector that setuptools builds, of what it requires, and of setuptools."""
    there, here = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("here")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "setuptools<81"]
    fetched = subprocess.run([*command, "-d", str(there / "dist")], capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"needs setuptools of a registry: {fetched.stderr.splitlines()[-1]}")
    for name in ("rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx942"):
        make_wheel(there / "dist", name, {}, version="7.0.0", tag="py3-none-any", is_purelib=True)
    texts = {
        "PKG-INFO": INFO,
        "setup.py": SETUP,
        "pyproject.toml": PYPROJECT,
        "rocm.egg-info/requires.txt": REQUIRES_TXT,
    }
    write_sdist(there / "dist", "rocm-7.0.0", {name: text.encode() for name, text in texts.items()})
    write_index(there / "dist", there / "simple")
    words = ("--project", "rocm[device]", "--targets", "gfx1100", "--requirements", "-d", here)
    done = rocwheel("index", "mirror", (there / "simple").as_uri(), *words)
    assert done.returncode == 0, done.stderr
    return here


def lock(mirror: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = ("lock", "rocm[device]", "--targets", "gfx1100", "--index-url", (mirror / "simple").as_uri())
    return rocwheel(*command, "-o", mirror / "pylock.toml", *words, environ=environ)


def test_a_mirror_has_what_builds_the_selector(mirror: Path) -> None:
    names = sorted(path.name.partition("-")[0] for path in (mirror / "dist").glob("*[lz]"))
    assert names == ["rocm", "rocm_sdk_core", "rocm_sdk_device_gfx1100", "setuptools"]


def test_what_the_build_needs_is_said_and_two_runs_give_the_same_bytes(mirror: Path) -> None:
    done = lock(mirror)
    assert done.returncode == 0, done.stderr
    assert "warning: rocm: is an sdist, whose build needs setuptools>=61, and a lock file has no room" in done.stderr
    first = (mirror / "pylock.toml").read_bytes()
    second = lock(mirror, "--json", PYTHONHASHSEED="1")
    assert json.loads(second.stdout)["build_requires"] == {"rocm": ["setuptools>=61"]}
    assert (mirror / "pylock.toml").read_bytes() == first
    locked = Pylock.from_dict(msgspec.toml.decode(first))
    assert [package.name for package in locked.packages] == ["rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100"]


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_lock_file_installs_without_a_network_with_the_mirror_at_hand(
    mirror: Path, environment: Path, offline: dict[str, str], installer: str
) -> None:
    assert lock(mirror).returncode == 0
    python = environment / "bin/python"
    if installer == "pip":
        command = [str(install_pip_26(environment)), "-m", "pip", "install", "--find-links", str(mirror / "dist")]
    else:
        command = [
            find_uv(),
            "pip",
            "install",
            "--python",
            str(python),
            "--no-index",
            "--find-links",
            str(mirror / "dist"),
        ]
    command += ["-r", str(mirror / "pylock.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline, cwd=environment)
    assert done.returncode == 0, done.stderr
    listed = [find_uv(), "pip", "list", "--python", str(python), "--format", "json"]
    shown = json.loads(subprocess.run(listed, capture_output=True, text=True, check=True, env=offline).stdout)
    names = {package["name"] for package in shown} - {"pip"}
    assert names == {"rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100"}
