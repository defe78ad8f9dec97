"""Packages for Windows, built on this machine: what is in them, and what uv makes of them for Windows."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.stubs import make_exec_stub
from rocwheel.demo import SAMPLE_WINDOWS
from tests.support.artifacts import artifact
from tests.support.pe_files import pe_file
from tests.support.windows_trees import DLL, write_windows_sdk

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

X86_64 = 62
WHEELS = ["rocm_sdk_core", "rocm_sdk_devel", "rocm_sdk_device_gfx1100", "rocm_sdk_libraries"]


def build(run: Run, source: Path, *options: str) -> Path:
    """Build artifacts, and return the folder of distributions."""
    dest = source.with_name(f"{source.name}-out")
    done = run("build", "--artifact-dir", source, "--version", "7.13.0", "--dest-dir", dest, *options)
    assert done.status == 0, done.stderr
    return dest / "dist"


def write_linux_sdk(folder: Path) -> Path:
    """Write the artifacts of an SDK for Linux with one program, a library's data and code for another GPU."""
    artifact(folder, "core-hip_run_generic", {"bin/hipcc": make_exec_stub(X86_64, "hipcc.bin")})
    artifact(folder, "blas_lib_generic", {"share/blas.txt": b"blas"})
    artifact(folder, "blas_lib_gfx942", {"lib/rocblas/library/TensileLibrary_gfx942.dat": b"kernels"})
    artifact(folder, "rocprofiler-systems_lib_generic", {"share/profiler.txt": b"profiler"})
    return folder


def members(dist: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(dist / f"{name}-7.13.0-py3-none-win_amd64.whl")


@pytest.fixture
def dist(run: Run, tmp_path: Path) -> Path:
    """Return the packages of a small SDK for Windows."""
    return build(run, write_windows_sdk(tmp_path / "windows"))


def test_all_wheels_are_for_windows_and_there_are_no_profilers(dist: Path) -> None:
    assert sorted(path.name for path in dist.iterdir()) == [
        "rocm-7.13.0.tar.gz",
        *(f"{name}-7.13.0-py3-none-win_amd64.whl" for name in WHEELS),
    ]


def test_dlls_are_shipped_unchanged_in_bin_without_test_plugins(dist: Path) -> None:
    with members(dist, "rocm_sdk_libraries") as wheel:
        files = [name for name in wheel.namelist() if name.startswith("_rocm_sdk_libraries/bin/")]
        assert files == [f"_rocm_sdk_libraries/bin/{name}.dll" for name in ("hipblas", "libhipblaslt", "rocblas")]
        assert {wheel.read(name) for name in files} == {DLL}


def test_console_scripts_exist_only_for_existing_programs(dist: Path) -> None:
    with members(dist, "rocm_sdk_core") as wheel:
        assert wheel.read("rocm_sdk_core-7.13.0.dist-info/entry_points.txt").decode() == (
            "[console_scripts]\nhipcc = rocm_sdk_core._cli:hipcc\nhipconfig = rocm_sdk_core._cli:hipconfig\n"
        )


def test_the_devel_archive_contains_only_files_and_lists_the_links(dist: Path) -> None:
    with members(dist, "rocm_sdk_devel") as wheel:
        links = json.loads(wheel.read("rocm_sdk_devel/_links.json"))["links"]
        with tarfile.open(fileobj=io.BytesIO(wheel.read("rocm_sdk_devel/_devel.tar"))) as tar:
            files = {member.name for member in tar if not member.isdir()}
            assert all(member.isfile() or member.isdir() for member in tar)
    assert files == {f"_rocm_sdk_devel/lib/{name}" for name in ("amdhip64.lib", "hipblas.lib", "libhipblaslt.dll.a")}
    assert links["bin/amdhip64_7.dll"] == "_rocm_sdk_core/bin/amdhip64_7.dll"
    assert links["bin/rocblas.dll"] == "_rocm_sdk_libraries/bin/rocblas.dll"
    assert links["include/hip/hip_runtime.h"] == "_rocm_sdk_core/include/hip/hip_runtime.h"


def test_the_opencl_loader_is_only_in_the_devel_package(run: Run) -> None:
    wheels = json.loads(run("build", "--dry-run", "--artifact-dir", SAMPLE_WINDOWS, "--json").stdout)["wheels"]
    having = {
        wheel["metadata"]["name"] for wheel in wheels for member in wheel["members"] if "OpenCL.dll" in str(member)
    }
    assert having == {"rocm-sdk-devel"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--platform", "linux"], "--platform: is linux; expected windows, because", id="another platform"),
        pytest.param(["--platform-tag", "manylinux_2_28_x86_64"], "but the files are for Windows on x86-64", id="tag"),
    ],
)
def test_options_that_contradict_the_files_are_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, options: list[str], said: str
) -> None:
    source = write_windows_sdk(tmp_path / "windows")
    done = run("build", "--artifact-dir", source, "--version", "7.13.0", "--dest-dir", tmp_path / "out", *options)
    assert (done.status, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_the_platform_can_be_stated_explicitly(run: Run, tmp_path: Path, dist: Path) -> None:
    again = build(run, write_windows_sdk(tmp_path / "again"), "--platform", "windows", "--platform-tag", "win_amd64")
    assert [path.name for path in sorted(again.iterdir())] == [path.name for path in sorted(dist.iterdir())]


@pytest.mark.parametrize(
    ("options", "tag"),
    [([], "manylinux_2_5_x86_64"), (["--platform", "windows"], "win_amd64")],
    ids=["nobody says", "somebody says"],
)
def test_the_platform_option_is_used_without_binaries(run: Run, tmp_path: Path, options: list[str], tag: str) -> None:
    artifact(tmp_path / "in", "core-hip_dev_generic", {"include/hip/hip_runtime.h": b"// hip"})
    artifact(tmp_path / "in", "blas_lib_generic", {"share/blas.txt": b"blas"})
    built = build(run, tmp_path / "in", *options)
    assert (built / f"rocm_sdk_core-7.13.0-py3-none-{tag}.whl").is_file()


def test_a_tree_with_files_for_both_systems_is_refused(run: Run, tmp_path: Path) -> None:
    source = write_windows_sdk(tmp_path / "windows", {"blas_lib_generic": {"lib/b": make_exec_stub(X86_64, "x")}})
    done = run("build", "--dry-run", "--artifact-dir", source, "--version", "7.13.0")
    assert done.status == 2
    text = " ".join(done.stderr.split())
    assert (
        "contains files for two systems: lib/b from blas_lib_generic is for Linux, bin/amd_comgr0713.dll from" in text
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("bin/.kpack/gfx90a:xnack+.kpack", "a colon"),
        ("bin/HIPBLAS.dll", "differs from"),
        (f"share/{'a' * 120}/{'b' * 120}", "characters long"),
    ],
    ids=["name", "case", "length"],
)
def test_paths_that_windows_does_not_allow_are_refused_before_any_write(
    run: Run, tmp_path: Path, path: str, said: str
) -> None:
    source = write_windows_sdk(tmp_path / "windows", {"blas_lib_generic": {path: DLL}})
    done = run("build", "--artifact-dir", source, "--version", "7.13.0", "--dest-dir", tmp_path / "out")
    text = " ".join(done.stderr.split())
    assert (done.status, f"_rocm_sdk_libraries/{path}: " in text, said in text) == (2, True, True), text
    assert not (tmp_path / "out/dist").exists()


def test_probable_mistakes_are_reported_as_warnings(run: Run, tmp_path: Path) -> None:
    solver = pe_file("rocsolver.dll", "KERNEL32.dll", "nobody.dll")
    source = write_windows_sdk(tmp_path / "windows", {"blas_lib_generic": {"bin/rocsolver.dll": solver}})
    done = run("build", "--dry-run", "--artifact-dir", source, "--version", "7.13.0", "--json")
    document = json.loads(done.stdout)
    assert document["platform"] == "windows"
    assert [(warning["kind"], warning["subject"]) for warning in document["warnings"]] == [
        ("import-library", "lib/libhipblaslt.dll.a"),
        ("missing-library", "nobody.dll"),
    ]


def uv(*arguments: str | Path) -> None:
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("needs uv")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "ROCM_", "HSA_"))}
    environment = {**kept, "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1"}
    done = subprocess.run([found, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def installed(index: Path, platform: str, requirement: str, site: Path) -> list[str]:
    """Return which distributions uv installs for a platform."""
    uv("pip", "install", "--python-platform", platform, "--target", site, "--index-url", index.as_uri(), requirement)
    return sorted(path.name.partition("-")[0] for path in site.glob("*.dist-info"))


@pytest.mark.parametrize(
    ("platform", "requirement", "expected"),
    [
        pytest.param("x86_64-pc-windows-msvc", "rocm[libraries,devel,device-all,profiler]", WHEELS, id="windows"),
        pytest.param(
            "x86_64-unknown-linux-gnu",
            "rocm[libraries,devel,device-all,profiler]",
            ["rocm_profiler", "rocm_sdk_core", "rocm_sdk_devel", "rocm_sdk_device_gfx942", "rocm_sdk_libraries"],
            id="linux",
        ),
    ],
)
def test_one_index_and_one_rocm_package_serve_both_platforms(
    run: Run, tmp_path: Path, platform: str, requirement: str, expected: list[str]
) -> None:
    windows = build(run, write_windows_sdk(tmp_path / "windows"))
    linux = build(run, write_linux_sdk(tmp_path / "linux"))
    both = tmp_path / "both"
    assert run("selector", "merge", linux, windows, "--dest-dir", both).status == 0
    for wheel in (*linux.glob("*.whl"), *windows.glob("*.whl")):
        shutil.copy(wheel, both)
    assert run("index", both, "--output", tmp_path / "simple").status == 0
    site = tmp_path / "site"
    assert installed(tmp_path / "simple", platform, requirement, site) == ["rocm", *expected]
    is_windows = platform == "x86_64-pc-windows-msvc"
    assert (site / "_rocm_sdk_core/bin" / ("hipcc.exe" if is_windows else "hipcc")).is_file()


def test_a_promoted_candidate_equals_a_build_of_the_release(run: Run, tmp_path: Path) -> None:
    source = write_windows_sdk(tmp_path / "windows")
    candidate = tmp_path / "candidate"
    done = run("build", "--artifact-dir", source, "--version", "7.13.0rc1", "--dest-dir", candidate)
    assert done.status == 0, done.stderr
    promoted = tmp_path / "promoted"
    assert run("promote", candidate / "dist", "--to", "7.13.0", "--output", promoted).status == 0
    done = run("diff", build(run, source), promoted)
    assert (done.status, done.stdout.partition(":")[0]) == (0, "no differences"), done.stdout


def test_a_lock_for_both_platforms_has_the_packages_for_each(run: Run, tmp_path: Path) -> None:
    folders = [build(run, write_windows_sdk(tmp_path / "windows")), build(run, write_linux_sdk(tmp_path / "linux"))]
    assert run("selector", "merge", *folders, "--dest-dir", tmp_path / "both").status == 0
    for wheel in (path for folder in folders for path in folder.glob("*.whl")):
        shutil.copy(wheel, tmp_path / "both")
    assert run("index", tmp_path / "both", "--output", tmp_path / "simple").status == 0
    wanted, lock = tmp_path / "wanted.in", tmp_path / "lock.txt"
    wanted.write_text("rocm[libraries,device-all]")
    words = ("--universal", "--no-header", "--no-annotate", "--index-url", (tmp_path / "simple").as_uri())
    uv("pip", "compile", *words, "--output-file", lock, wanted)
    assert lock.read_text().splitlines() == [
        "rocm==7.13.0",
        "rocm-sdk-core==7.13.0",
        "rocm-sdk-device-gfx1100==7.13.0 ; sys_platform == 'win32'",
        "rocm-sdk-device-gfx942==7.13.0 ; sys_platform == 'linux'",
        "rocm-sdk-libraries==7.13.0",
    ]


@pytest.mark.parametrize("platforms", [("linux", "windows"), ("windows",)], ids=["both", "windows alone"])
def test_a_universal_lock_accepts_gpus_that_only_one_platform_supports(
    run: Run, tmp_path: Path, platforms: tuple[str, ...]
) -> None:
    writers = {"linux": write_linux_sdk, "windows": write_windows_sdk}
    folders = [build(run, writers[name](tmp_path / name)) for name in platforms]
    both = tmp_path / "both"
    assert run("selector", "merge", *folders, "--dest-dir", both).status == 0
    for wheel in (path for folder in folders for path in folder.glob("*.whl")):
        shutil.copy(wheel, both)
    assert run("index", both, "--output", tmp_path / "simple").status == 0
    words = ("--targets", "gfx1100", "--index-url", (tmp_path / "simple").as_uri(), "-o", tmp_path / "pylock.toml")
    done = run("lock", "rocm[libraries,device-gfx1100]", "--universal", *words, "--json")
    assert done.status == 0, done.stderr
    assert sorted(json.loads(done.stdout)["packages"]) == [
        "rocm",
        "rocm-sdk-core",
        "rocm-sdk-device-gfx1100",
        "rocm-sdk-libraries",
    ]
    lacking = "warning: gfx1100: has no packages for Linux, so installations on these systems lack its code.\n"
    assert done.stderr == (lacking if len(platforms) == 2 else "")
    # While a lock for this system alone says what is missing
    refused = run("lock", "rocm[libraries,device-gfx1100]", *words)
    reason = (
        "on the following platform: `win_amd64`" if len(platforms) == 1 else "has no package for gfx1100, even though"
    )
    assert (refused.status, reason in refused.stderr) == (2, True), refused.stderr


def test_a_windows_install_prefix_produces_the_same_packages_as_its_artifacts(run: Run, tmp_path: Path) -> None:
    prefix, sdk = tmp_path / "prefix", tmp_path / "sdk"
    assert run("artifacts", "extract", *sorted(SAMPLE_WINDOWS.glob("*.tar.xz")), "--output", sdk).status == 0
    for manifest in sdk.glob("*/artifact_manifest.txt"):
        for stage in manifest.read_text().split():
            shutil.copytree(manifest.parent / stage, prefix, dirs_exist_ok=True)
    done = run("artifacts", "import", prefix, "--output", tmp_path / "imported", "--strict")
    assert done.status == 0, done.stderr
    made = [
        json.loads(run("build", "--dry-run", "--artifact-dir", folder, "--json").stdout)
        for folder in (tmp_path / "imported", sdk)
    ]
    assert [one["platform"] for one in made] == ["windows", "windows"]
    imported, original = [
        {
            (wheel["metadata"]["name"], member["path"])
            for wheel in one["wheels"]
            for member in wheel["members"]
            if ".dist-info/" not in member["path"]
        }
        for one in made
    ]
    assert imported == original
    assert (
        "rocm-sdk-device-gfx1100",
        "_rocm_sdk_libraries/bin/rocblas/library/Kernels.so-000-gfx1100.hsaco",
    ) in original
