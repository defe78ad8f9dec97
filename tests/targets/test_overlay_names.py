"""The names of libraries that stand in for others on one GPU target."""

from __future__ import annotations

import pytest

from rocwheel.targets.serving import overlay_path, split_overlay_path


@pytest.mark.parametrize("target", ["gfx906", "gfx90a", "gfx9-4-generic", "gfx1250-strict"])
@pytest.mark.parametrize("library", ["lib/librocblas.so.5", "librccl.so.1.0", "lib/libhipdnn_backend.so"])
def test_a_name_gives_back_the_library_and_the_target(library: str, target: str) -> None:
    assert split_overlay_path(overlay_path(library, target)) == (library, target)


@pytest.mark.parametrize(
    "path",
    [
        "lib/librocblas.so.5",
        "lib/rocblas/library/Kernels.so-000-gfx906.hsaco",
        "lib/x.so.gfx",
        "lib/libMIOpenCKGroupedConv_gfx942.so.1",
        "lib/x.so.d/gfx906",
        "lib/table.gfx906",
    ],
)
def test_other_files_stand_in_for_nothing(path: str) -> None:
    assert split_overlay_path(path) is None
