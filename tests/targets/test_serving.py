"""Tests of `rocwheel.targets.serving`."""

from __future__ import annotations

import pytest

from rocwheel.targets.serving import label_of_project, overlay_path, serves, split_overlay_path
from rocwheel.targets.target_set import parse_target_set


@pytest.mark.parametrize("target", ["gfx906", "gfx90a", "gfx9-4-generic", "gfx1250-strict"])
@pytest.mark.parametrize("library", ["lib/librocblas.so.5", "librccl.so.1.0", "lib/libhipdnn_backend.so"])
def test_an_overlay_path_splits_into_the_library_and_the_target(library: str, target: str) -> None:
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
def test_other_files_are_not_overlays(path: str) -> None:
    assert split_overlay_path(path) is None


@pytest.mark.parametrize(
    ("label", "wanted", "expected"),
    [
        ("generic", "gfx942", True),
        ("gfx942", "gfx942", True),
        ("gfx942", "gfx1100", False),
        ("gfx942", "gfx1100;gfx942", True),
        ("gfx94X-dcgpu", "gfx942", True),
        ("gfx94x-dcgpu", "gfx942", True),  # as names of distributions have it
        ("gfx94X-dcgpu", "gfx90a", False),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx9-4-generic", "gfx90a", False),
        ("gfx12-0", "gfx1201", True),  # kernels for a family
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx90a:xnack+", "gfx90a:xnack-", False),
        ("gfx90a", "gfx90a:xnack-", True),
        ("gfx1250-strict", "gfx1250", True),
        ("gfx1250", "gfx1250-strict", True),  # they share a package
        ("gfx1251", "gfx1250-strict", False),
        ("gfx9999", "gfx942", False),
        ("gfx942:nonsense", "gfx942", False),
        ("", "gfx942", False),
    ],
)
def test_a_label_serves_the_gpus_that_run_its_code(label: str, wanted: str, expected: bool) -> None:
    assert serves(label, parse_target_set(wanted).ids) is expected


@pytest.mark.parametrize(
    ("project", "label"),
    [
        ("rocm-sdk-device-gfx942", "gfx942"),
        ("rocm-sdk-libraries-gfx94x-dcgpu", "gfx94x-dcgpu"),
        ("torch-device-gfx12-0", "gfx12-0"),
        ("amd-gfx9-4-generic", "gfx9-4-generic"),
        ("rocm-sdk-core", "generic"),
        ("gfxreader", "generic"),
        ("my-gfx", "generic"),
    ],
)
def test_the_end_of_a_project_name_is_its_label(project: str, label: str) -> None:
    assert label_of_project(project) == label
