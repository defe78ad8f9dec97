"""The ``rocm`` sdist under real pip and uv: what it installs, and what people are told when it can't choose."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import Metadata

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.installed import MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow


TOOLS = pytest.mark.parametrize("tool", ["pip", "uv"])
FAMILIES = (("gfx103X-dgpu", ("gfx1030", "gfx1031")), ("gfx94X-dcgpu", ("gfx942",)))


@TOOLS
def test_the_chosen_family_is_installed(make_set: MakeSet, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[libraries,device]", ROCM_SDK_TARGET_FAMILY="gfx1030")
    assert environment.dists() == ["rocm", "rocm_sdk_core", "rocm_sdk_device_gfx1030", "rocm_sdk_libraries"]


@TOOLS
def test_device_packages_of_all_different_gpus_are_installed(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm[device]", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030,gfx906")
    assert environment.dists()[-3:] == ["rocm_sdk_device_gfx1030", "rocm_sdk_device_gfx906", "rocm_sdk_libraries"]


@TOOLS
def test_the_libraries_of_the_family_are_installed(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(families=FAMILIES), tool)
    environment.install("rocm[libraries]", ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx942")
    assert environment.dists() == ["rocm", "rocm_sdk_core", "rocm_sdk_libraries_gfx94x_dcgpu"]
    assert environment.evaluate("import rocm_sdk; print(rocm_sdk.find_libraries('hipsparse')[0])").endswith(
        "/_rocm_sdk_libraries_gfx94X_dcgpu/lib/libhipsparse.so.1"
    )


@TOOLS
def test_core_installs_without_a_gpu(make_set: MakeSet, make_environment: MakeEnvironment, tool: str) -> None:
    environment = make_environment(make_set(), tool)
    environment.install("rocm")
    assert environment.dists() == ["rocm", "rocm_sdk_core"]


def test_a_set_without_device_packages_installs_with_any_choice(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set(devices=()))
    environment.install("rocm", ROCM_SDK_TARGET_FAMILY="gfx906")
    assert environment.dists() == ["rocm", "rocm_sdk_core"]


@TOOLS
def test_the_device_extra_without_a_gpu_is_refused_with_the_extras_to_request(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    done = make_environment(make_set(), tool).install("rocm[device]", check=False)
    assert done.returncode != 0
    # Then both show the same words, uv with its own line breaks
    assert (
        "rocm-sdk-core==7.2.0+no.amd.gpu.was.found.so.request.one.of.the.extras.device.gfx906.device.gfx1030"
    ) in "".join(f"{done.stdout}{done.stderr}".split())
    make_environment(make_set(), tool).install("rocm[device-gfx906]")


@TOOLS
def test_a_gpu_without_packages_is_refused_by_name(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    done = make_environment(make_set(), tool).install(
        "rocm[device]", check=False, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1100"
    )
    assert done.returncode != 0
    assert "this.release.has.no.packages.for.the.gpus.found.gfx1100" in "".join(f"{done.stdout}{done.stderr}".split())


@TOOLS
def test_an_unavailable_family_is_refused_with_the_available_families(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    done = make_environment(make_set(), tool).install("rocm", check=False, ROCM_SDK_TARGET_FAMILY="gfx1100")
    assert done.returncode != 0
    assert "has no packages for gfx1100 on linux. Available: gfx906, gfx1030." in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@TOOLS
def test_family_specific_libraries_without_a_gpu_are_refused(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    done = make_environment(make_set(families=FAMILIES), tool).install("rocm[libraries]", check=False)
    assert done.returncode != 0
    text = "no.amd.gpu.was.found.so.request.one.of.the.extras.libraries.gfx103x.dgpu.libraries.gfx94x.dcgpu"
    assert text in "".join(f"{done.stdout}{done.stderr}".split())


@TOOLS
def test_the_selector_wheel_has_an_extra_for_each_target(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(make_set(selector="wheel"), tool)
    environment.install("rocm[libraries,device-gfx906,profiler]")
    assert environment.dists() == [
        "rocm",
        "rocm_profiler",
        "rocm_sdk_core",
        "rocm_sdk_device_gfx906",
        "rocm_sdk_libraries",
    ]
    environment.install("rocm[device-all]")
    assert "rocm_sdk_device_gfx1030" in environment.dists()
    assert environment.run("rocm-sdk", "version").stdout == "7.2.0\n"


@pytest.fixture
def sdist(make_set: MakeSet, tmp_path: Path) -> Path:
    with tarfile.open(make_set() / "rocm-7.2.0.tar.gz") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "rocm-7.2.0"


def call_hook(source: Path, call: str, **environ: str) -> str:
    code = f"import selector; print(selector.{call})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=source, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_prepared_metadata_equals_the_metadata_of_the_wheel(sdist: Path, tmp_path: Path) -> None:
    name = call_hook(sdist, f"prepare_metadata_for_build_wheel({str(tmp_path)!r})", ROCM_SDK_TARGET_FAMILY="gfx906")
    wheel = call_hook(sdist, f"build_wheel({str(tmp_path)!r})", ROCM_SDK_TARGET_FAMILY="gfx906")
    assert (name, wheel) == ("rocm-7.2.0.dist-info", "rocm-7.2.0-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        prepared = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / name).rglob("*.*"))
        assert archive.read(f"{name}/METADATA") == (tmp_path / name / "METADATA").read_bytes()
        assert archive.read(f"{name}/licenses/LICENSE") == b"MIT\n"
        assert set(prepared) < set(archive.namelist())


def test_metadata_is_valid_and_keeps_the_description(sdist: Path, tmp_path: Path) -> None:
    name = call_hook(sdist, f"prepare_metadata_for_build_wheel({str(tmp_path)!r})", ROCM_SDK_TARGET_FAMILY="gfx906")
    raw = (tmp_path / name / "METADATA").read_bytes()
    metadata = Metadata.from_email(raw)
    assert metadata.license_expression == "MIT"
    assert metadata.dynamic is None
    assert [str(r) for r in metadata.requires_dist or [] if "extra" not in str(r)] == ["rocm-sdk-core==7.2.0"]
    assert 'rocm-sdk-device-gfx906==7.2.0; extra == "device"' in [str(r) for r in metadata.requires_dist or []]
    assert email.message_from_bytes(raw).get_payload() == "# ROCm\n\nText for people.\n"


def test_the_same_choice_gives_the_same_bytes(sdist: Path, tmp_path: Path) -> None:
    wheels = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        name = call_hook(sdist, f"build_wheel({str(tmp_path / folder)!r})", ROCM_SDK_TARGET_FAMILY="gfx906")
        wheels.append((tmp_path / folder / name).read_bytes())
    assert wheels[0] == wheels[1]


def test_an_sdist_rebuilt_from_itself_has_the_same_files(sdist: Path, make_set: MakeSet, tmp_path: Path) -> None:
    name = call_hook(sdist, f"build_sdist({str(tmp_path)!r})")
    with tarfile.open(tmp_path / name) as new, tarfile.open(make_set() / name) as old:
        assert sorted(new.getnames()) == sorted(old.getnames())


def test_a_verbose_build_explains_its_choice(sdist: Path, tmp_path: Path) -> None:
    environ = {"ROCM_SDK_VERBOSE": "1", "ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906"}
    code = f"import selector; selector.build_wheel({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sdist, env=environ, capture_output=True, text=True, check=False
    )
    assert done.stderr == "rocm: gfx906 chosen for the GPUs found: gfx906\n"
