"""Packages of GPU targets: none takes anything from another, none is chosen silently, and the wrong one is noticed."""

from __future__ import annotations

import csv
import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.utils import parse_wheel_filename

from rocwheel.build.job import PlanJob
from rocwheel.build.planning.options import PlanOptions
from tests.reference.conftest import build, shared, shown, uninstall, write_artifact

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import Compile, MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

USE = """
import rocm_sdk
print(rocm_sdk.find_libraries("hipsparse")[0].name)
rocm_sdk.preload_libraries("hipsparse", "hipblas")
"""


def device_files(environment: Installed, target: str) -> list[str]:
    """Return the files of the libraries package that bear the name of a target."""
    return [name for name in environment.files() if name.startswith("_rocm_sdk_libraries") and target in name]


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_libraries_work_after_their_device_package_is_removed_or_replaced(
    dist: Path, make_environment: MakeEnvironment, tool: str
) -> None:
    environment = make_environment(dist)
    environment.install("rocm[libraries,device-gfx90a]")
    uninstall(environment, tool, "rocm-sdk-device-gfx90a")
    assert environment.evaluate(USE) == "libhipsparse.so.4"
    assert device_files(environment, "gfx90a") == []
    environment.install("rocm[device-gfx1030]")
    assert environment.evaluate(USE) == "libhipsparse.so.4"
    assert len(device_files(environment, "gfx1030")) > 4


def test_no_file_belongs_to_two_packages(dist: Path) -> None:
    owners: dict[str, str] = {}
    for wheel in sorted(dist.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
            for row in csv.reader(io.StringIO(archive.read(record).decode())):
                assert owners.setdefault(row[0], wheel.name) == wheel.name
    assert len(owners) > 130


def test_the_device_extra_without_a_gpu_is_refused_instead_of_using_the_first_target(
    dist: Path, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(dist)
    done = environment.install("rocm[libraries,device]", check=False)
    assert done.returncode != 0
    expected = "no.amd.gpu.was.found.so.request.one.of.the.extras.device.gfx906.device.gfx90a.device.gfx1030"
    assert expected in shown(done.stdout + done.stderr)
    assert environment.dists() == []


def test_an_extra_for_a_target_without_a_package_is_refused(dist: Path, make_environment: MakeEnvironment) -> None:
    environment = make_environment(dist)
    done = environment.install("rocm[libraries,device-gfx1100]", check=False)
    assert done.returncode != 0
    expected = "gfx1100.is.not.in.this.release.which.has.gfx906.gfx90a.gfx1030"
    assert expected in shown(done.stdout + done.stderr)


def test_the_self_test_fails_on_a_gpu_without_packages(sdk: Installed) -> None:
    done = sdk.run("rocm-sdk", "test", check=False, ROCM_BOOTSTRAP_FORCE_GFX_ARCH="gfx1030")
    assert done.returncode == 1
    assert "the package with the kernels for gfx1030 is not installed" in done.stdout


def test_xnack_variants_share_a_package_with_a_valid_name(dist: Path) -> None:
    names = [str(parse_wheel_filename(wheel.name)[0]) for wheel in dist.glob("*device*")]
    assert sorted(names) == ["rocm-sdk-device-gfx1030", "rocm-sdk-device-gfx906", "rocm-sdk-device-gfx90a"]
    wheel = next(dist.glob("rocm_sdk_device_gfx90a-*.whl"))
    kernels = [name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".kpack")]
    assert sorted(kernels) == ["blas_lib_gfx90a.kpack", "blas_lib_gfx90a:xnack+.kpack"]


def test_completeness_is_judged_by_processor_not_by_variant(tmp_path: Path, small_sdk: Path) -> None:
    write_artifact(small_sdk, "blas_lib_gfx900:xnack-", {"lib/rocblas/library/k.co": b"code"})
    plan = PlanJob(small_sdk, options=PlanOptions(targets=("gfx900",))).run()
    assert plan.targets == ("gfx900",)


def test_rccl_keeps_its_device_files(tmp_path: Path, small_sdk: Path) -> None:
    write_artifact(small_sdk, "rccl_lib_gfx942", {".kpack/rccl_lib_gfx942.kpack": b"kernels"})
    wheel = next(build(small_sdk, tmp_path).glob("*device*"))
    assert "_rocm_sdk_libraries/.kpack/rccl_lib_gfx942.kpack" in zipfile.ZipFile(wheel).namelist()


def test_a_library_in_a_device_package_finds_the_core_and_is_found_by_its_unversioned_name(
    tmp_path: Path, small_sdk: Path, hip_library: Path, compile_c: Compile, make_environment: MakeEnvironment
) -> None:
    name = "libMIOpenCKGroupedConv_gfx942.so"
    text = "int hip(void); int kernels(void) { return hip(); }"
    plugin = compile_c(f"{name}.1", text, *shared(f"{name}.1"), str(hip_library))
    write_artifact(small_sdk, "miopen_lib_gfx942", {f"lib/{name}.1.0": plugin, f"lib/{name}.1": f"-> {name}.1.0"})
    environment = make_environment(build(small_sdk, tmp_path))
    environment.install("rocm[device-gfx942]")
    for opened in (f"{name}.1", name):
        path = environment.site / "_rocm_sdk_libraries/lib" / opened
        environment.evaluate(f"import ctypes; ctypes.CDLL({str(path)!r})")


def test_each_family_package_has_the_libraries_and_its_own_device_code(tmp_path: Path, small_sdk: Path) -> None:
    manifest = b'{"rocm_version": "7.0.0", "flags": {"KPACK_SPLIT_ARTIFACTS": false}}'
    write_artifact(small_sdk, "base_lib_generic", {"share/therock/therock_manifest.json": manifest})
    for family in ("gfx103X-dgpu", "gfx94X-dcgpu"):
        write_artifact(small_sdk, f"blas_lib_{family}", {"lib/rocblas/library/kernels.co": family.encode()})
    wheels = sorted(build(small_sdk, tmp_path).glob("rocm_sdk_libraries*.whl"))
    assert [wheel.name.partition("-")[0] for wheel in wheels] == [
        "rocm_sdk_libraries_gfx103x_dgpu",
        "rocm_sdk_libraries_gfx94x_dcgpu",
    ]
    for wheel, family in zip(wheels, ("gfx103X-dgpu", "gfx94X-dcgpu"), strict=True):
        root = f"_rocm_sdk_libraries_{family.replace('-', '_')}"
        with zipfile.ZipFile(wheel) as archive:
            assert archive.read(f"{root}/lib/rocblas/library/kernels.co").decode() == family
            assert archive.read(f"{root}/lib/librocblas.so.5").startswith(b"\x7fELF")
