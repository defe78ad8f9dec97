"""Tests of `rocwheel.report.inputs`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.report.inputs import component_of


@pytest.mark.parametrize(
    ("path", "component"),
    [
        ("_rocm_sdk_libraries/lib/librocblas.so.5", "lib"),
        ("_rocm_sdk_libraries/lib/rocblas/library/TensileLibrary_gfx906.dat", "kernels"),
        ("_rocm_sdk_core/.kpack/blas_gfx906.kpack", "kernels"),
        ("include/hip/hip_runtime.h", "dev"),
        ("lib/cmake/hip/hip-config.cmake", "dev"),
        ("rocm_sdk_devel/_devel.tar.xz", "dev"),
        ("rocm-7.0.dist-info/licenses/LICENSE", "metadata"),
        ("share/doc/hip/LICENSE.txt", "doc"),
        ("rocm_sdk/__init__.py", "python"),
        ("bin/rocminfo", "run"),
        ("lib/.build-id/ab/cd.debug", "dbg"),
        ("libexec/tests/run", "test"),
    ],
)
def test_a_path_determines_the_component(path: str, component: str) -> None:
    assert component_of(path) == component


@given(st.text(min_size=1))
def test_every_path_has_a_component(path: str) -> None:
    assert component_of(path)
