"""Tests of `rocwheel.environment.known_libraries`."""

from __future__ import annotations

import pytest

from rocwheel.environment.known_libraries import (
    DllKind,
    GnuImportLibrary,
    comes_with_python,
    driver_of_library,
    find_sdk_dll,
    gnu_import_libraries,
    is_cuda_library,
    is_driver_dll,
    is_shared_by_toolkits,
    is_toolkit_folder,
    is_versioned_by_rocm,
    kind_of_dll,
    known_package_folders,
    package_of_library,
)


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcublasLt.so.11", "libcudnn_ops.so.9", "libcuda.so.1"])
def test_cuda_libraries_are_recognized(name: str) -> None:
    assert is_cuda_library(name)


@pytest.mark.parametrize("name", ["libamdhip64.so.7", "libhipblas.so.3", "libcurl.so.4", "libnuma.so.1", "libc.so.6"])
def test_other_libraries_are_not_cuda_libraries(name: str) -> None:
    assert not is_cuda_library(name)


def test_opencl_is_shared_by_toolkits() -> None:
    assert is_shared_by_toolkits("libOpenCL.so.1")
    assert not is_shared_by_toolkits("libamdhip64.so.7")


@pytest.mark.parametrize(
    "path",
    [
        "/opt/rocm/lib",
        "/opt/rocm-6.0.0/lib/",
        "/opt/rocm/core-7.14/lib",
        "/opt/rocm_sdk_612/lib",
        "/home/me/rocm/lib",
        "/usr/local/cuda/lib64",
        "/usr/local/cuda-12.4/targets/x86_64-linux/lib",
    ],
)
def test_toolkit_folders_are_recognized_by_name(path: str) -> None:
    assert is_toolkit_folder(path)


@pytest.mark.parametrize(
    "path",
    [
        "/opt/vendor/lib",
        "/opt/procmail/lib",
        "/opt/barracuda/lib",
        "/opt/cuda-plugins/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/local/nvidia/lib64",
        "/opt/conda/lib/python3.12/site-packages/torch/lib",
        "$ORIGIN/../rocm/lib",
        "rocm/lib",
    ],
)
def test_other_folders_are_not_toolkit_folders(path: str) -> None:
    assert not is_toolkit_folder(path)


@pytest.mark.parametrize(
    "name",
    ["librocm-openblas.so.0.3", "librocm-openblas.so", "librocm_sysdeps_elf.so.2", "libOpenCL.so.2", "libomp.so.5"],
)
def test_libraries_of_other_projects_are_not_versioned_by_rocm(name: str) -> None:
    assert not is_versioned_by_rocm(name)


@pytest.mark.parametrize("name", ["libamdhip64.so.6", "librocblas.so.4", "librocm_smi64.so.7", "librocm_kpack.so.0"])
def test_rocm_libraries_are_versioned_by_rocm(name: str) -> None:
    assert is_versioned_by_rocm(name)


def test_cuda_toolkit_libraries_have_no_driver() -> None:
    assert [driver_of_library(name) for name in ("libcudart.so.12", "libcublas.so.12", "libamdhip64.so.7")] == [""] * 3


@pytest.mark.parametrize(
    ("library", "packages", "package"),
    [
        ("libc10_cuda.so", ("numpy", "torch"), "torch"),
        ("libcudart.so.13", ("numpy", "torch"), "torch"),
        ("libparquet.so.2200", ("pyarrow",), "pyarrow"),
        ("libc10_cuda.so", ("numpy",), ""),
        ("libcurl.so", ("torch",), ""),
        ("libz.so.1", ("torch",), ""),
    ],
)
def test_a_library_is_attributed_to_the_required_package_known_to_contain_it(
    library: str, packages: tuple[str, ...], package: str
) -> None:
    assert package_of_library(library, packages) == package


def test_torch_libraries_are_known_to_be_in_the_torch_folder() -> None:
    (torch,) = known_package_folders()
    assert (torch.distribution, torch.folder) == ("torch", "torch/lib")
    assert {"libtorch.so", "libtorch_hip.so", "libc10.so"} <= {*torch.libraries}
    assert "libtorchaudio.so" not in torch.libraries


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("KERNEL32.dll", DllKind.SYSTEM),
        ("api-ms-win-crt-heap-l1-1-0.dll", DllKind.SYSTEM),
        ("ext-ms-win-ntuser-window-l1-1-0.dll", DllKind.SYSTEM),
        ("RstrtMgr.DLL", DllKind.SYSTEM),
        ("dbgcore.DLL", DllKind.SYSTEM),
        ("FirewallAPI.dll", DllKind.SYSTEM),
        ("cldapi.dll", DllKind.SYSTEM),
        ("WOFUTIL.dll", DllKind.SYSTEM),
        ("icuuc.dll", DllKind.SYSTEM),
        ("icu.dll", DllKind.SYSTEM),
        ("VCRUNTIME140_1.dll", DllKind.VISUAL_CPP),
        ("VCRUNTIME140_THREADS.dll", DllKind.VISUAL_CPP),
        ("VCRUNTIME140_THREADSD.dll", DllKind.DEBUG),
        ("MSVCP140_ATOMIC_WAIT.dll", DllKind.VISUAL_CPP),
        ("MSVCP140D.dll", DllKind.DEBUG),
        ("ucrtbased.dll", DllKind.DEBUG),
        ("python3.dll", DllKind.PYTHON),
        ("python313t.dll", DllKind.PYTHON),
        ("amdhip64_7.dll", DllKind.DRIVER),
        ("amd_comgr0713.dll", DllKind.DRIVER),
        ("OpenCL.dll", DllKind.DRIVER),
        ("amdxc64.dll", DllKind.DRIVER),
        ("hiprtc07013.dll", None),
        ("rocblas.dll", None),
        ("libgcc_s_seh-1.dll", None),
    ],
)
def test_dlls_are_classified_by_name(name: str, kind: DllKind | None) -> None:
    assert kind_of_dll(name) is kind
    assert is_driver_dll(name) is (kind is DllKind.DRIVER)


def test_python_ships_two_visual_cpp_libraries() -> None:
    assert [name for name in ("vcruntime140.dll", "VCRUNTIME140_1.dll", "msvcp140.dll") if comes_with_python(name)] == [
        "vcruntime140.dll",
        "VCRUNTIME140_1.dll",
    ]


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("amdhip64_7.dll", "rocm-sdk-core"),
        ("hiprtc-builtins07013.dll", "rocm-sdk-core"),
        ("libhipblaslt.dll", "rocm-sdk-libraries"),
        ("MIOpenCKGroupedConv_gfx1151.dll", "rocm-sdk-libraries"),
        ("OpenCL.dll", ""),
        ("torch_cpu.dll", ""),
    ],
)
def test_dlls_of_the_rocm_packages_are_known(name: str, distribution: str) -> None:
    found = find_sdk_dll(name)
    assert (found.distribution if found else "") == distribution


@pytest.mark.parametrize(
    ("paths", "expected", "beside"),
    [
        pytest.param(["lib/libx.dll.a"], "lib/x.lib", "", id="alone"),
        pytest.param(["lib/libx.dll.a", "lib/x.lib"], "lib/x.lib", "lib/x.lib", id="without lib"),
        pytest.param(["lib/libx.dll.a", "lib/libx.lib"], "lib/x.lib", "lib/libx.lib", id="with lib"),
        pytest.param(["lib/LibX.DLL.A", "lib/x.LIB"], "lib/X.lib", "lib/x.LIB", id="another case"),
        pytest.param(["lib/libx.dll.a", "bin/x.lib"], "lib/x.lib", "", id="another folder"),
        pytest.param(["x.dll.a"], "x.lib", "", id="no folder"),
    ],
)
def test_gnu_import_libraries_are_listed_with_the_name_that_other_linkers_expect(
    paths: list[str], expected: str, beside: str
) -> None:
    assert list(gnu_import_libraries(paths)) == [GnuImportLibrary(paths[0], expected, beside)]


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(["lib/amdhip64.lib", "lib/libz.a", "bin/a.dll"], id="other libraries"),
        pytest.param(["demo/_c.cp312-win_amd64.pyd", "demo/_c.cp312-win_amd64.dll.a"], id="extension module"),
    ],
)
def test_other_files_are_not_gnu_import_libraries(paths: list[str]) -> None:
    assert list(gnu_import_libraries(paths)) == []
