"""The component that a file belongs to, by the stage folder that it stands in."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.packages.licensing.component import Component, component_of
from tests.packages.trees import file_entry


@pytest.mark.parametrize(
    ("stage", "project"),
    [
        ("math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/rocBLAS"),
        ("third-party/sysdeps/linux/zlib/build/stage", "third-party/sysdeps/linux/zlib"),
        ("blas/stage", "blas"),
        ("stage", ""),
        ("build/stage", ""),
        ("", ""),
        ("somewhere/else", "somewhere/else"),
    ],
)
def test_a_project_is_named_by_its_folder_in_the_sources(stage: str, project: str) -> None:
    entry = msgspec.structs.replace(file_entry("lib/libx.so", "blas_lib_generic"), stage=stage)
    assert component_of(entry) == Component("blas", project)
