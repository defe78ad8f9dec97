"""Debian packages for one GPU each, by the scripts of examples/debian-per-gpu; dpkg builds, reads and installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import FIXTURES, ROOT

EXAMPLE = ROOT / "examples/debian-per-gpu"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
CONTROL = """\
Package: libtwo1
Version: 1.0-1
Architecture: amd64
Maintainer: Somebody <somebody@example.org>
Installed-Size: 48
Recommends: other
Section: libs
Description: two units
 Of which each has a bundle.
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg"),
    pytest.mark.skipif(shutil.which("dpkg-architecture") is None, reason="no dpkg-dev"),
]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {**os.environ, "PATH": path, "LC_ALL": "C"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Split a package of one library; return the folder of what was made."""
    folder = tmp_path_factory.mktemp("debs")
    (folder / "libtwo1/DEBIAN").mkdir(parents=True)
    (folder / "libtwo1/DEBIAN/control").write_text(CONTROL)
    (folder / "libtwo1/DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
    (folder / "libtwo1" / LIBRARIES).mkdir(parents=True)
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", folder / "libtwo1" / LIBRARIES / "libtwo.so.1")
    assert run("dpkg-deb", "--root-owner-group", "--build", folder / "libtwo1", folder / "whole.deb").returncode == 0
    done = run("bash", EXAMPLE / "split-debs.sh", folder / "dest", folder / "whole.deb")
    assert (done.returncode, done.stderr) == (0, "libtwo1: 3 packages for GPUs: gfx90a gfx906 gfx1030\n"), done.stderr
    return folder / "dest"


def test_there_is_one_package_without_device_code_and_one_per_gpu(debs: Path) -> None:
    names = ["libtwo1-gfx1030", "libtwo1-gfx906", "libtwo1-gfx90a", "libtwo1"]
    assert sorted(path.name for path in debs.iterdir()) == sorted(f"{name}_1.0-1_amd64.deb" for name in names)
    files = {name: run("dpkg-deb", "--contents", debs / f"{name}_1.0-1_amd64.deb").stdout for name in names}
    assert f"./{LIBRARIES}/rocm-kpack/libtwo.so.1_gfx906.kpack\n" in files["libtwo1-gfx906"]
    assert ".so.1\n" not in files["libtwo1-gfx906"]
    assert f"./{LIBRARIES}/libtwo.so.1\n" in files["libtwo1"]
    assert "kpack" not in files["libtwo1"]


def test_control_fields_and_triggers_match_the_package_roles(debs: Path) -> None:
    def fields(name: str, *wanted: str) -> list[str]:
        done = run("dpkg-deb", "--field", debs / f"{name}_1.0-1_amd64.deb", *wanted)
        return done.stdout.splitlines()

    assert fields("libtwo1", "Recommends") == ["other, libtwo1-device"]
    assert fields("libtwo1-gfx906", "Depends", "Provides", "Source", "X-ROCm-GPU-Architecture") == [
        "Depends: libtwo1 (= 1.0-1)",
        "Provides: libtwo1-device (= 1.0-1)",
        "Source: libtwo1",
        "X-ROCm-GPU-Architecture: gfx906",
    ]
    triggers = {name: run("dpkg-deb", "--info", path, "triggers") for name, path in packages(debs).items()}
    assert triggers["libtwo1"].stdout == "activate-noawait ldconfig\n"
    assert triggers["libtwo1-gfx906"].returncode != 0


def packages(debs: Path) -> dict[str, Path]:
    return {path.name.partition("_")[0]: path for path in debs.iterdir()}


def test_a_stack_is_complete_for_the_gpus_whose_packages_are_present(debs: Path) -> None:
    made = packages(debs)
    check: list[str | Path] = ["bash", EXAMPLE / "check-stack.sh", "gfx906", made["libtwo1"]]
    whole = run(*check, made["libtwo1-gfx906"], made["libtwo1-gfx1030"])
    assert (whole.returncode, whole.stdout) == (0, "")
    lacking = run(*check, made["libtwo1-gfx1030"])
    assert lacking.returncode == 1
    assert f"{LIBRARIES}/libtwo.so.1: gfx906 on a stock runtime" in lacking.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root")
def test_dpkg_installs_a_gpu_package_only_with_its_library_package(debs: Path, tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg/info").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/updates").mkdir()
    (tmp_path / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={tmp_path}", "--force-not-root", "--force-unsafe-io", "--install"]
    made = packages(debs)
    alone = run(*dpkg, made["libtwo1-gfx906"])
    assert (alone.returncode, "depends on libtwo1 (= 1.0-1)" in alone.stderr) == (1, True)
    both = run(*dpkg, made["libtwo1"], made["libtwo1-gfx906"], made["libtwo1-gfx90a"])
    assert both.returncode == 0, both.stderr
    archives = tmp_path / LIBRARIES / "rocm-kpack"
    assert sorted(path.name for path in archives.iterdir()) == [
        "libtwo.so.1_gfx906.kpack",
        "libtwo.so.1_gfx90a.kpack",
    ]
    assert run("rocwheel", "targets", "runs-on", "--quiet", "gfx90a:xnack+", tmp_path / "usr").returncode == 0
