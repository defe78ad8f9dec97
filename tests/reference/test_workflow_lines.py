"""Every way in which the reference's workflows and scripts call its packager, with the name of the program replaced.

The lines are those of TheRock's ``build_portable_linux_python_packages.yml``, its counterpart for Windows, and its page
about Python packages, with the values that the workflows fill in.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK, SAMPLE_WINDOWS
from tests.build.merging.test_installers import find_uv
from tests.sdk.installed import BIN, run
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

BOTH = """
rocwheel build \\
  --artifact-dir="$ARTIFACTS_DIR" \\
  --dest-dir="$PACKAGES_DIR" \\
  --version="$VERSION" \\
  --linux-amdgpu-families="$LINUX" \\
  --windows-amdgpu-families="$WINDOWS"
"""
DOCUMENTED = """
rocwheel build \\
    --artifact-dir "$ARTIFACTS_DIR" \\
    --dest-dir "$PACKAGES_DIR"
"""
LINES = [
    ("a release", BOTH, {"VERSION": "7.14.0", "LINUX": "gfx906;gfx90a;gfx1030", "WINDOWS": "gfx103X-all"}, "7.14.0"),
    ("a build of CI", BOTH, {"VERSION": "7.14.0.dev0+abc", "LINUX": "", "WINDOWS": ""}, "7.14.0.dev0+abc"),
    ("a build without a version", BOTH, {"VERSION": "", "LINUX": "", "WINDOWS": ""}, "7.0.0.dev0"),
    ("one list", BOTH, {"VERSION": "7.14.0", "LINUX": "gfx906,gfx90a", "WINDOWS": ""}, "7.14.0"),
    ("the list of the other platform", BOTH, {"VERSION": "7.14.0", "LINUX": "", "WINDOWS": "gfx1100"}, "7.14.0"),
    ("the documented command", DOCUMENTED, {}, "7.0.0"),
]


@pytest.mark.parametrize(("line", "values", "version"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_each_reference_command_line_builds_all_packages(
    line: str, values: dict[str, str], version: str, tmp_path: Path
) -> None:
    places = {"ARTIFACTS_DIR": str(SAMPLE_SDK), "PACKAGES_DIR": str(tmp_path), "PATH": f"{BIN}:/usr/bin:/bin"}
    run(["sh", "-ec", line], environ=places | values)
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "dist").iterdir())
    assert names == [
        "rocm",
        "rocm_profiler",
        "rocm_sdk_core",
        "rocm_sdk_devel",
        "rocm_sdk_device_gfx1030",
        "rocm_sdk_device_gfx906",
        "rocm_sdk_device_gfx90a",
        "rocm_sdk_libraries",
    ]
    assert (tmp_path / f"dist/rocm-{version}.tar.gz").is_file()


@pytest.mark.parametrize("option", ["--asan", "--asan-build-id=7", "--sanitize"])
def test_an_unknown_option_is_refused_and_nothing_is_written(option: str, tmp_path: Path) -> None:
    done = rocwheel("build", "--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(tmp_path / "packages"), option)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: rocwheel build: has no option {option.partition('=')[0]}.")
    assert not (tmp_path / "packages").exists()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the builds for Linux and for Windows of one release, each by itself."""
    folder = tmp_path_factory.mktemp("both")
    for name, artifacts in (("linux", SAMPLE_SDK), ("windows", SAMPLE_WINDOWS)):
        values = {"VERSION": "7.14.0", "LINUX": "gfx906;gfx90a;gfx1030", "WINDOWS": "gfx1100"}
        places = {"ARTIFACTS_DIR": str(artifacts), "PACKAGES_DIR": str(folder / name), "PATH": f"{BIN}:/usr/bin:/bin"}
        run(["sh", "-ec", BOTH], environ=places | values)
    return folder


def test_linux_and_windows_builds_with_both_family_lists_write_the_same_rocm_sdist(both: Path) -> None:
    linux, windows = ((both / name / "dist/rocm-7.14.0.tar.gz").read_bytes() for name in ("linux", "windows"))
    assert linux == windows


RESOLVED = [
    ("x86_64-unknown-linux-gnu", "libraries,device-gfx90a", ["core", "device-gfx90a", "libraries"]),
    (
        "x86_64-unknown-linux-gnu",
        "libraries,device-all",
        ["core", "device-gfx1030", "device-gfx906", "device-gfx90a", "libraries"],
    ),
    ("x86_64-unknown-linux-gnu", "devel", ["core", "devel", "libraries"]),
    ("x86_64-pc-windows-msvc", "libraries,device-all", ["core", "device-gfx1100", "libraries"]),
    ("x86_64-pc-windows-msvc", "devel", ["core", "devel", "libraries"]),
    ("x86_64-pc-windows-msvc", "profiler", ["core"]),
]


@pytest.mark.parametrize(("platform", "extras", "packages"), RESOLVED)
def test_packages_of_both_builds_in_one_folder_install_on_each_platform(
    platform: str, extras: str, packages: list[str], both: Path
) -> None:
    (both / "in.txt").write_text(f"rocm[{extras}]==7.14.0\n")
    folders = [f"--find-links={both / name / 'dist'}" for name in ("linux", "windows")]
    command = [find_uv(), "pip", "compile", "in.txt", "--no-index", *folders, "--python-platform", platform]
    done = subprocess.run(
        [*command, "--no-header", "--no-annotate", "--no-config", "--no-cache"],
        cwd=both,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["rocm==7.14.0", *(f"rocm-sdk-{name}==7.14.0" for name in packages)]


def test_the_shared_rocm_sdist_finds_the_libraries_of_its_platform(both: Path) -> None:
    site = both / "site"
    command = [find_uv(), "pip", "install", "--target", str(site), "--no-index", f"--find-links={both / 'linux/dist'}"]
    subprocess.run([*command, "--no-config", "--no-cache", "rocm[libraries]==7.14.0"], check=True, capture_output=True)
    code = "import rocm_sdk; print(*rocm_sdk.find_libraries('amdhip64', 'hipblas'))"
    done = run(["python3", "-c", code], environ={"PYTHONPATH": str(site), "PATH": f"{BIN}:/usr/bin:/bin"})
    hip = f"{site}/_rocm_sdk_core/lib/libamdhip64.so.7"
    assert done.stdout.split() == [hip, f"{site}/_rocm_sdk_libraries/lib/libhipblas.so.3"]


def test_a_build_that_lacks_a_package_required_by_rocm_fails(tmp_path: Path) -> None:
    for path in SAMPLE_SDK.glob("*.tar.xz"):
        if not path.name.startswith(("rocprofiler-compute", "rocprofiler-systems")):
            (tmp_path / path.name).symlink_to(path)
    families = ("--linux-amdgpu-families=gfx906", "--windows-amdgpu-families=gfx1100")
    done = rocwheel("build", str(tmp_path), "--dest-dir", str(tmp_path / "packages"), *families)
    assert done.returncode == 2
    assert done.stderr.endswith(
        ": has no files for the package profiler; expected at least one file, because rocm requires the package on "
        "both platforms. Add its artifacts, remove it from the recipe, or build each platform with only its own list "
        "of GPUs.\n"
    )
    assert not (tmp_path / "packages/dist").exists()


def test_targets_missing_from_both_family_lists_are_packaged_with_a_warning(tmp_path: Path) -> None:
    families = ("--linux-amdgpu-families=gfx906;gfx90a", "--windows-amdgpu-families=gfx1100")
    done = rocwheel("build", str(SAMPLE_SDK), "--dest-dir", str(tmp_path), *families)
    assert done.returncode == 0
    found = "rocm: has no extra for rocm-sdk-device-gfx1030, because no list of families contains their targets"
    assert f"warning: {found}\n" in done.stderr
