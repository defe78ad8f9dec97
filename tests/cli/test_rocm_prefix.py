"""A tree like AMD's own ``/opt/rocm``, from the prefix to the self test of the installed packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import rocwheel
from tests.support.environments import make_venv, pip_for
from tests.support.libraries import needs_compiler
from tests.support.rocm_prefix import ROCM_6, ROCM_7, Release, make_rocm_prefix

pytestmark = [pytest.mark.slow, needs_compiler]


def install(dist: Path, environment: Path) -> None:
    options = ["-q", "--no-index", "--find-links", str(dist)]
    command = [*pip_for(make_venv(environment)), "install", *options, "rocm[libraries,devel]"]
    subprocess.run(command, check=True, capture_output=True)


def use(environment: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(environment)}
    return subprocess.run(command, env=variables, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("release", [ROCM_6, ROCM_7], ids=lambda release: release.version)
def test_a_tree_like_opt_rocm_becomes_packages_that_work_without_it(release: Release, tmp_path: Path) -> None:
    prefix = make_rocm_prefix(tmp_path, release)
    artifacts, packages, environment = tmp_path / "artifacts", tmp_path / "packages", tmp_path / "env"

    imported = rocwheel("artifacts", "import", tmp_path / "rocm", "--output", artifacts)
    built = rocwheel("build", "--artifact-dir", artifacts, "--dest-dir", packages, "--quiet")
    install(packages / "dist", environment)
    prefix.rename(tmp_path / "away")

    assert (imported.returncode, built.returncode) == (0, 0), imported.stderr + built.stderr
    assert f"SDK version: {release.version}" in imported.stdout.splitlines()
    tested = use(environment, "rocm-sdk", "test")
    assert (tested.returncode, ", 0 failed, " in tested.stdout) == (0, True), tested.stdout
    assert use(environment, "hipcc", "--version").stdout == f"AMD clang version {release.llvm}.0.0git\n"
    root = Path(use(environment, "rocm-sdk", "path", "--root").stdout.strip())
    for path in (".info/version", "amdgcn/bitcode/ockl.bc", "llvm/bin/clang", "hip/include/hip/hip_runtime.h"):
        assert (root / path).exists(), path


@pytest.mark.parametrize("release", [ROCM_6, ROCM_7], ids=lambda release: release.version)
def test_in_a_tree_like_opt_rocm_only_the_tests_match_no_rule(release: Release, tmp_path: Path) -> None:
    make_rocm_prefix(tmp_path, release)

    imported = rocwheel("artifacts", "import", tmp_path / "rocm", "--output", tmp_path / "artifacts", "-v")

    title = "files that match no rule, added to the catch-all artifact: 1\n"
    assert f"{title}  tests/hip/run.sh\n" in imported.stdout
