"""Building from artifacts as they come: read-only, with odd names, device code of any name, larger than memory."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.core.errors import RocwheelError
from rocwheel.demo import SAMPLE_SDK
from tests.reference.conftest import build, write_artifact
from tests.support.command_line import as_user, rocwheel
from tests.support.places import ELF_FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

CODE_OBJECT = ELF_FIXTURES / "gfx906.co"
MEGABYTE = 1 << 20
BUILD = """
from pathlib import Path
from rocwheel.build.job import BuildJob, PlanJob
BuildJob(PlanJob(Path(sys.argv[1])), Path(sys.argv[2])).run()
"""
WATCHED = f"""
import os, sys
written = set()
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        written.add(str(arguments[0]))
sys.addaudithook(note)
{BUILD}
print("\\n".join(sorted(written)))
"""
# VmHWM, not ru_maxrss: that one begins with the size of the process that this one was forked from.
MEASURED = f"""
import sys
{BUILD}
status = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""


def members(dist: Path, package: str) -> dict[str, bytes]:
    """Return the content of a wheel."""
    with zipfile.ZipFile(next(dist.glob(f"{package}-*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def run_build(script: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Return the sample SDK as folders."""
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), tmp_path / "sample")
    return tmp_path / "sample"


def test_read_only_artifacts_can_be_built(dist: Path, sample: Path, tmp_path: Path) -> None:
    subprocess.run(["chmod", "-R", "a-w", str(sample)], check=True)
    arguments = ["-q", "--artifact-dir", str(sample), "--dest-dir", str(tmp_path)]
    done = rocwheel("build", *arguments, before=as_user())
    subprocess.run(["chmod", "-R", "u+w", str(sample)], check=True)
    assert (done.returncode, done.stderr) == (0, "")
    wheel = next(dist.glob("rocm_sdk_libraries-*.whl"))
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


def test_code_objects_are_unchanged_whatever_their_name(small_sdk: Path, tmp_path: Path) -> None:
    names = ["lib/rocblas/library/kernels.bin", "lib/miopen/kernels.so", "lib/libkernels.so.1", "bin/kernels"]
    write_artifact(small_sdk, "miopen_lib_generic", dict.fromkeys(names, CODE_OBJECT))
    files = members(build(small_sdk, tmp_path), "rocm_sdk_libraries")
    for name in names:
        assert files[f"_rocm_sdk_libraries/{name}"] == CODE_OBJECT.read_bytes(), name


def test_files_with_commas_and_quotes_in_their_names_install_and_uninstall(
    small_sdk: Path, tmp_path: Path, make_environment: MakeEnvironment
) -> None:
    name = 'share/it\'s, "quoted".txt'
    write_artifact(small_sdk, "core-hip_run_generic", {name: b"text"})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[devel]")
    environment.run("rocm-sdk", "init")
    for root in ("_rocm_sdk_core", "_rocm_sdk_devel"):
        assert (environment.site / root / name).read_text() == "text"
    record = next(environment.site.glob("rocm_sdk_devel-*/RECORD")).read_text()
    assert f"_rocm_sdk_devel/{name}" in [row[0] for row in csv.reader(io.StringIO(record))]
    environment.uninstall("rocm", "rocm-sdk-core", "rocm-sdk-libraries", "rocm-sdk-devel")
    assert [path for path in environment.site.iterdir() if path.name.startswith("_rocm")] == []


def test_a_target_name_that_contains_code_is_refused(small_sdk: Path, tmp_path: Path) -> None:
    artifact = "blas_lib_gfx942'+exit(3)+'"
    write_artifact(small_sdk, artifact, {"lib/rocblas/library/k.co": b"code"})
    with pytest.raises(RocwheelError, match=re.escape(artifact)):
        build(small_sdk, tmp_path)
    assert not (tmp_path / "dist").exists()


def test_a_build_writes_only_its_packages_and_their_records(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = run_build(WATCHED, sample, out).splitlines()
    packages = [path for path in written if path.startswith(f"{out}/dist/.rocm")]
    others = [path.removeprefix(f"{out}/").split(".")[1] for path in written if path not in packages]
    assert (len(packages), others) == (8, ["SHA256SUMS", "rocwheel-build"])


def test_the_development_archive_can_contain_a_file_larger_than_the_memory_limit(
    small_sdk: Path, tmp_path: Path
) -> None:
    write_artifact(small_sdk, "blas_dev_generic", {"lib/libbig.a": b""})
    with (small_sdk / "blas_dev_generic/stage/lib/libbig.a").open("r+b") as file:
        file.truncate(700 * MEGABYTE)
    kilobytes = int(run_build(MEASURED, small_sdk, tmp_path))
    assert kilobytes * 1024 < 512 * MEGABYTE
    with zipfile.ZipFile(next((tmp_path / "dist").glob("rocm_sdk_devel-*"))) as wheel:
        assert wheel.getinfo("rocm_sdk_devel/_devel.tar").file_size > 700 * MEGABYTE


def test_every_file_of_the_artifacts_is_in_some_package(sdk: Installed, sample: Path) -> None:
    # Given all artifacts but those of tests and of GPUs that are not installed
    found = {path.relative_to(sdk.root).as_posix() for path in sdk.root.rglob("*")}
    profiler = sdk.site / "_rocm_profiler"
    found |= {path.relative_to(profiler).as_posix() for path in profiler.rglob("*")}
    wanted: dict[str, str] = {}
    for artifact in sample.iterdir():
        if "_test_" not in artifact.name and artifact.name.rpartition("_")[2] in ("generic", "gfx906"):
            for stage in (artifact / "artifact_manifest.txt").read_text().split():
                paths = [path for path in (artifact / stage).rglob("*") if path.is_symlink() or not path.is_dir()]
                wanted |= {path.relative_to(artifact / stage).as_posix(): artifact.name for path in paths}
    assert len(wanted) > 150
    # The profiler is for running alone: its library has its SONAME and its plain name, its licenses are elsewhere.
    assert sorted(path for path in wanted if path not in found) == [
        "lib/librocprof-sys.so.1.0.0",
        "share/doc/rocprofiler-compute/LICENSE.md",
        "share/doc/rocprofiler-systems/LICENSE.md",
    ]
