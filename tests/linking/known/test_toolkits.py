"""Which toolkit a library or a folder belongs to."""

from __future__ import annotations

import pytest

from rocwheel.environment.known_libraries import (
    driver_of_library,
    is_cuda_library,
    is_shared_by_toolkits,
    is_toolkit_folder,
    is_versioned_by_rocm,
)


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcublasLt.so.11", "libcudnn_ops.so.9", "libcuda.so.1"])
def test_libraries_of_cuda_are_known(name: str) -> None:
    assert is_cuda_library(name)


@pytest.mark.parametrize("name", ["libamdhip64.so.7", "libhipblas.so.3", "libcurl.so.4", "libnuma.so.1", "libc.so.6"])
def test_other_libraries_are_none_of_cuda(name: str) -> None:
    assert not is_cuda_library(name)


def test_opencl_belongs_to_no_toolkit_alone() -> None:
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
def test_folders_of_toolkits_are_known_by_their_names(path: str) -> None:
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
def test_other_folders_are_of_no_toolkit(path: str) -> None:
    assert not is_toolkit_folder(path)


@pytest.mark.parametrize(
    "name",
    ["librocm-openblas.so.0.3", "librocm-openblas.so", "librocm_sysdeps_elf.so.2", "libOpenCL.so.2", "libomp.so.5"],
)
def test_libraries_of_other_projects_say_nothing_of_the_release_of_rocm(name: str) -> None:
    assert not is_versioned_by_rocm(name)


@pytest.mark.parametrize("name", ["libamdhip64.so.6", "librocblas.so.4", "librocm_smi64.so.7", "librocm_kpack.so.0"])
def test_libraries_of_rocm_tell_its_release(name: str) -> None:
    assert is_versioned_by_rocm(name)


def test_a_library_of_the_cuda_toolkit_comes_with_no_driver() -> None:
    assert [driver_of_library(name) for name in ("libcudart.so.12", "libcublas.so.12", "libamdhip64.so.7")] == [""] * 3
