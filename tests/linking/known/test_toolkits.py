"""Which toolkit a library belongs to."""

from __future__ import annotations

import pytest

from rocwheel.linking.known.toolkits import is_cuda_library, is_shared_by_toolkits


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcublasLt.so.11", "libcudnn_ops.so.9", "libcuda.so.1"])
def test_libraries_of_cuda_are_known(name: str) -> None:
    assert is_cuda_library(name)


@pytest.mark.parametrize("name", ["libamdhip64.so.7", "libhipblas.so.3", "libcurl.so.4", "libnuma.so.1", "libc.so.6"])
def test_other_libraries_are_none_of_cuda(name: str) -> None:
    assert not is_cuda_library(name)


def test_opencl_belongs_to_no_toolkit_alone() -> None:
    assert is_shared_by_toolkits("libOpenCL.so.1")
    assert not is_shared_by_toolkits("libamdhip64.so.7")
