"""Installing and uninstalling: without an index, on hosts of any layout, in any version, and leaving nothing behind."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email import message_from_string
from typing import TYPE_CHECKING

import pytest
from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.sources import WheelFile

from rocwheel.build.planning.options import PlanOptions
from rocwheel.demo import SAMPLE_SDK
from tests.reference.conftest import EVERYTHING, build, uninstall
from tests.sdk.installed import BIN, run
from tests.support.sdists import unpack_tar

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_sdist_installs_without_an_index_or_build_requirements(
    dist: Path, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(dist, tool)
    environment.installer("install", "--no-index", "--find-links", str(dist), "rocm[libraries]")
    assert environment.dists() == ["rocm", "rocm_sdk_core", "rocm_sdk_libraries"]


def test_rocm_does_not_depend_on_itself(core_only: Installed) -> None:
    metadata = next(core_only.site.glob("rocm-*.dist-info/METADATA")).read_text()
    requirements = message_from_string(metadata).get_all("Requires-Dist", [])
    assert len(requirements) > 5
    assert not [text for text in requirements if text.startswith(("rocm=", "rocm[", "rocm "))]


def test_text_files_in_the_sdist_have_unix_line_endings(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(next(dist.glob("rocm-*.tar.gz"))) as archive:
        unpack_tar(archive, tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if b"\r" in path.read_bytes()] == []


@pytest.mark.parametrize(("tool", "last"), [("pip", "rocm_sdk_core"), ("uv", "rocm_sdk_devel")])
def test_no_files_are_left_after_using_and_uninstalling_everything(
    dist: Path, make_environment: MakeEnvironment, tool: str, last: str
) -> None:
    environment = make_environment(dist)
    before = environment.files()
    environment.install(EVERYTHING)
    for command in ("hipcc", "amdclang++", "rocm-smi"):
        environment.run(command, "--version")
    names = [name for name in environment.dists() if name.startswith("rocm")]
    uninstall(environment, tool, *(name for name in names if name != last))
    uninstall(environment, tool, last)
    assert environment.files() == before


@pytest.fixture
def split_host(dist: Path, tmp_path: Path) -> dict[str, str]:
    """Install where pure packages and those with binaries have different folders; return the variables to use them."""
    folders = {name: str(tmp_path / name) for name in ("purelib", "platlib", "scripts", "headers", "data")}
    sdist = next(dist.glob("rocm-*.tar.gz"))
    run([str(BIN / "uv"), "build", "-q", "--wheel", str(sdist), "-o", str(tmp_path), "--python", sys.executable])
    wheels = [*tmp_path.glob("rocm-*.whl"), *dist.glob("*_core-*.whl"), *dist.glob("*_libraries-*.whl")]
    for wheel in [*wheels, *dist.glob("*_devel-*.whl"), *dist.glob("*_gfx906-*.whl")]:
        with WheelFile.open(wheel) as source:
            install(source, SchemeDictionaryDestination(folders, sys.executable, "posix"), {})
    return {"PYTHONPATH": f"{folders['purelib']}:{folders['platlib']}"}


def test_packages_work_with_separate_purelib_and_platlib_folders(split_host: dict[str, str], tmp_path: Path) -> None:
    assert [path.name for path in (tmp_path / "purelib").iterdir() if path.suffix != ".dist-info"] == ["rocm_sdk"]
    code = "import rocm_sdk; rocm_sdk.preload_libraries('hipblas'); print(rocm_sdk.find_libraries('hipblas')[0])"
    found = run([sys.executable, "-c", code], environ=split_host).stdout
    assert found == f"{tmp_path}/platlib/_rocm_sdk_libraries/lib/libhipblas.so.3\n"
    root = run([sys.executable, "-m", "rocm_sdk", "path", "--root"], environ=split_host).stdout
    assert root == f"{tmp_path}/platlib/_rocm_sdk_devel\n"
    run([str(tmp_path / "scripts/hipcc"), "--version"], environ=split_host)


def test_packages_on_the_path_through_two_folders_are_used_once(sdk: Installed, tmp_path: Path) -> None:
    # Given a host whose lib64 is a link to lib, both of which are searched
    (tmp_path / "lib64").symlink_to(sdk.site)
    path = f"{tmp_path}/lib64"
    assert sdk.run("rocm-sdk", "test", PYTHONPATH=path).returncode == 0
    (root,) = set(sdk.run("rocm-sdk", "path", "--root", PYTHONPATH=path).stdout.split())
    assert (sdk.site / "_rocm_sdk_devel").samefile(root)


@pytest.mark.parametrize("version", ["7.0.0.dev0+g1a2b3c", "7.0.0rc1", "7.0.0a20260822", "10.0.0.post1"])
def test_every_form_of_version_can_be_installed(
    version: str, tmp_path: Path, make_environment: MakeEnvironment, small_sdk: Path
) -> None:
    environment = make_environment(build(small_sdk, tmp_path, options=PlanOptions(version=version)))
    environment.install(f"rocm[libraries]=={version}")
    assert environment.run("rocm-sdk", "version").stdout == f"{version}\n"
    assert len(environment.dists()) == 3


def test_a_module_suffix_is_used_everywhere(tmp_path: Path, make_environment: MakeEnvironment) -> None:
    dist = build(SAMPLE_SDK, tmp_path, options=PlanOptions(module_suffix="_nightly"))
    environment = make_environment(dist)
    environment.install(EVERYTHING)
    for command in ("rocprof-compute", "rocm-smi", "hipcc"):
        environment.run(command)
    environment.run("rocm-sdk", "test")
    assert sorted(path.name for path in environment.site.glob("_rocm*")) == [
        "_rocm_profiler_nightly",
        "_rocm_sdk_core_nightly",
        "_rocm_sdk_devel_nightly",
        "_rocm_sdk_libraries_nightly",
    ]


def test_an_sdk_without_device_code_can_be_installed(
    small_sdk: Path, tmp_path: Path, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[libraries,device]")
    environment.run("rocm-sdk", "test")


def test_metadata_contains_license_summary_and_requires_python(dist: Path) -> None:
    for wheel in dist.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            fields = message_from_string(archive.read(name).decode())
        assert all(fields[field] for field in ("License-Expression", "Summary", "Requires-Python")), wheel.name
