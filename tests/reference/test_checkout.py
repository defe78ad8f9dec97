"""TheRock's own scripts and self-tests, run on packages of rocwheel.

``ROCWHEEL_REFERENCE`` names a checkout of TheRock, such as one that ``git clone --depth 1`` makes. The scripts' own
requirements come from PyPI. These tests ran with commit 89553ce3 (August 22, 2026).
"""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.promoting.promote import PromoteJob
from rocwheel.demo import SAMPLE_SDK
from tests.reference.conftest import EVERYTHING, build, new_environment
from tests.sdk.installed import BIN, run
from tests.support.command_line import rocwheel
from tests.support.framework_wheels import make_framework_wheels
from tests.support.libraries import needs_compiler
from tests.support.s3_server import BUCKET
from tests.support.sdists import unpack_tar
from tests.support.wheels import members

if TYPE_CHECKING:
    from tests.support.s3_server import S3Server

CHECKOUT = os.environ.get("ROCWHEEL_REFERENCE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.deep,
    needs_compiler,
    pytest.mark.skipif(not CHECKOUT, reason="ROCWHEEL_REFERENCE names no checkout of TheRock"),
]
TOOLS = Path(CHECKOUT, "build_tools")
SELF_TESTS = TOOLS / "packaging/python/templates/rocm/src/rocm_sdk/tests"

OLD, NEW = "10.0.0rc1", "10.0.0"
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"

RUN_SELF_TESTS = """
import sys, unittest, rocm_sdk.tests
rocm_sdk.tests.__path__.insert(0, sys.argv[1])
names = ("base_test", "core_test", "libraries_test", "devel_test", "profiler_test")
suite = unittest.TestLoader().loadTestsFromNames([f"rocm_sdk.tests.{name}" for name in names])
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
"""

PROGRAM = """#!/bin/sh
echo "OVERVIEW: clang LLVM compiler"
echo "USAGE: $(basename "$0") [options] file"
echo "AMD-SMI"
"""
PROGRAMS = {
    "base_run_generic": (
        "base/aux-overlay",
        ("amdclang", "amdclang++", "amdclang-cl", "amdclang-cpp", "amdflang", "amdlld"),
    ),
    "core-hip_run_generic": ("core/clr", ("hipcc",)),
    "core-amdsmi_run_generic": ("core/amdsmi", ("amd-smi",)),
    "hipify_run_generic": ("compiler/hipify", ("hipify-clang", "hipify-perl")),
    "rocprofiler-systems_run_generic": (
        "profiler/rocprofiler-systems",
        ("rocprof-sys-sample", "rocprof-sys-instrument"),
    ),
}
"""Programs of the compiler and of tools. Those of the sample SDK don't print what the reference expects."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the requirements of the reference's scripts."""
    venv = tmp_path_factory.mktemp("scripts") / "venv"
    run([str(BIN / "uv"), "venv", "-q", "--python", sys.executable, str(venv)])
    requirements = str(TOOLS / "packaging/requirements.txt")
    run([str(BIN / "uv"), "pip", "install", "-q", "--python", str(venv / "bin/python"), "-r", requirements])
    return venv / "bin/python"


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a release candidate of the SDK and of PyTorch."""
    folder = tmp_path_factory.mktemp("candidates")
    dist = folder / "dist"
    rocwheel("build", SAMPLE_SDK, "--dest-dir", folder, "--version", OLD, "--quiet")
    for path in dist.glob("*.metadata"):
        path.unlink()
    make_framework_wheels(dist, OLD, tag=f"{PYTHON}-{PYTHON}-manylinux_2_5_x86_64")
    return dist


def promote(scripts: Path, candidates: Path, folder: Path, *options: str) -> Path:
    """Run the reference's promotion on a copy of the candidates, and return its folder."""
    shutil.copytree(candidates, folder)
    script = str(TOOLS / "packaging/promote_packages.py")
    run([str(scripts), script, f"--input-dir={folder}", "--delete-old-on-success", *options])
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fields(metadata: bytes) -> list[tuple[str, str]]:
    return sorted(email.message_from_bytes(metadata).items())


def test_the_reference_self_tests_pass(tmp_path: Path) -> None:
    artifacts = shutil.copytree(SAMPLE_SDK, tmp_path / "artifacts", ignore=shutil.ignore_patterns("windows"))
    for name, (component, programs) in PROGRAMS.items():
        archive, folder = artifacts / f"{name}.tar.xz", artifacts / name
        if archive.exists():
            with tarfile.open(archive) as tar:
                unpack_tar(tar, folder)
            archive.unlink()
        else:
            folder.mkdir()
            (folder / "artifact_manifest.txt").write_text(f"{component}/stage\n")
        for program in programs:
            path = folder / component / "stage/bin" / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(PROGRAM)
            path.chmod(0o755)
    environment = new_environment(tmp_path / "environment", build(artifacts, tmp_path / "packages"))
    environment.install(EVERYTHING)
    environment.run("rocm-sdk", "init")
    search = f"{environment.path}/bin:/usr/bin:/bin"
    done = environment.run("python", "-c", RUN_SELF_TESTS, str(SELF_TESTS), PATH=search, check=False)
    assert done.stderr.endswith("\nOK\n"), done.stdout + done.stderr


def test_reference_promotion_makes_the_same_packages(scripts: Path, candidates: Path, tmp_path: Path) -> None:
    theirs = promote(scripts, candidates, tmp_path / "theirs")
    PromoteJob(candidates, NEW, tmp_path / "ours").run()
    assert names(theirs) == names(tmp_path / "ours")
    different = set()
    for path in sorted(theirs.glob("*.whl")):
        their, our = members(path), members(tmp_path / "ours" / path.name)
        assert their.keys() == our.keys()
        (metadata,) = [name for name in our if name.endswith(".dist-info/METADATA")]
        assert fields(their[metadata]) == fields(our[metadata])
        changed = (name for name in our if their[name] != our[name] and not name.endswith("/RECORD"))
        different |= {name.partition("/")[2] for name in changed if name != metadata}
    # The reference doesn't know these files of rocwheel, which then state the old version.
    assert different == {
        "sboms/rocwheel.cdx.json",
        *(f".devel_links/{gpu}.json" for gpu in ("gfx906", "gfx90a", "gfx1030")),
    }
    for folder in (theirs, tmp_path / "ours"):
        rocwheel("verify", *sorted(folder.glob("*.whl")))
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--no-index",
            "--no-cache-dir",
            "--find-links",
            str(folder),
        ]
        done = subprocess.run(
            [*install, "rocm[libraries,devel,device-all]"], check=True, capture_output=True, text=True
        )
        assert f"Would install rocm-{NEW} rocm-sdk-core-{NEW}" in done.stdout


def test_reference_promotion_trims_frameworks_to_the_same_wheels(
    scripts: Path, candidates: Path, tmp_path: Path
) -> None:
    theirs = promote(scripts, candidates, tmp_path / "theirs", "--multi-arch-targets=gfx1030,gfx10")
    PromoteJob(candidates, NEW, tmp_path / "ours", ("gfx1030",)).run()
    assert names(theirs) == names(tmp_path / "ours")
    for path in theirs.glob("*torch*.whl"):
        their, our = members(path), members(tmp_path / "ours" / path.name)
        (metadata,) = [name for name in our if name.endswith(".dist-info/METADATA")]
        assert fields(their[metadata]) == fields(our[metadata])


@pytest.fixture
def promoted(candidates: Path, tmp_path: Path) -> Path:
    """Return the folder of a build with a release."""
    PromoteJob(candidates, NEW, tmp_path / "release/dist").run()
    return tmp_path / "release"


def stored(server: S3Server, scripts: Path, prefix: str) -> list[str]:
    code = f"""
import boto3
found = boto3.client("s3").list_objects_v2(Bucket={BUCKET!r}, Prefix={prefix!r})["Contents"]
print(*(one["Key"].removeprefix({prefix!r}) for one in found), sep="\\n")
"""
    return sorted(run([str(scripts), "-c", code], environ=aws(server)).stdout.split())


def aws(server: S3Server) -> dict[str, str]:
    return {**server.environ, "AWS_DEFAULT_REGION": "us-east-1"}


def test_the_reference_upload_scripts_store_the_packages(
    scripts: Path, promoted: Path, s3: S3Server, tmp_path: Path
) -> None:
    shutil.copytree(promoted / "dist", tmp_path / "input/wheels")
    script = str(TOOLS / "packaging/upload_release_packages.py")
    place = ["--bucket", BUCKET, "--bucket-prefix", "v4/whl/"]
    words = [script, "--input-dir", str(tmp_path / "input"), "--multi-arch", "--execute", *place]
    done = run([str(scripts), *words], environ=aws(s3))
    assert f"Python packages uploaded: {len(names(promoted / 'dist'))} (location: s3://{BUCKET}/v4/whl/)" in done.stdout
    assert stored(s3, scripts, "v4/whl/") == names(promoted / "dist")

    script = str(TOOLS / "github_actions/upload_python_packages.py")
    words = [script, "--input-packages-dir", str(promoted), "--run-id", "123", "--multiarch"]
    run([str(scripts), *words, "--bucket", BUCKET], environ=aws(s3))
    assert stored(s3, scripts, "123-linux/python/") == names(promoted / "dist")
    run([str(scripts), *words, "--output-dir", str(tmp_path / "output")])
    assert names(tmp_path / "output/123-linux/python") == names(promoted / "dist")
