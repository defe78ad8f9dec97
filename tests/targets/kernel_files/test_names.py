"""Tests of files that are for one target by their names."""

from __future__ import annotations

import pytest

from rocwheel.targets.kernel_files import is_kernel_file, kernel_targets, library_of, targets_in_path


@pytest.mark.parametrize(
    ("path", "targets"),
    [
        ("rocblas/library/Kernels.so-000-gfx1030.hsaco", ["gfx1030"]),
        ("hipblaslt/library/Kernels.so-000-gfx90a-xnack+.hsaco", ["gfx90a:xnack+"]),
        ("library/TensileLibrary_Type_HH_Contraction_l_Ailk_fallback_gfx906-xnack-.hsaco", ["gfx906:xnack-"]),
        ("library/TensileLibrary_lazy_gfx942.dat", ["gfx942"]),
        ("library/gfx90a/x.co", ["gfx90a"]),
        ("share/miopen/db/gfx90878.kdb", ["gfx908"]),
        ("share/miopen/db/gfx942130.kdb", ["gfx942"]),
        ("share/miopen/db/gfx90a6e.HIP.fdb.txt", ["gfx90a"]),
        ("share/miopen/db/gfx942e4.db.txt", ["gfx942"]),
        ("share/miopen/db/gfx1030_36.kdb", ["gfx1030"]),
        ("lib/libMIOpenCK_gfx9-4-generic.so", ["gfx9-4-generic"]),
        ("gfx900/gfx906.co", ["gfx900", "gfx906"]),
        ("library/x_gfx1250-strict.co", ["gfx1250-strict"]),
        ("lib/libdevice_conv_operations_gfx1250_strict.a", ["gfx1250-strict"]),
        ("share/miopen/db/gfx1250-strict256.kdb", ["gfx1250-strict"]),
        ("library/gfx1250/x_gfx1250.co", ["gfx1250"]),
        ("lib/librocsparse.so", []),
        ("x_gfx12345.co", []),
        ("xgfx906.co", []),
        ("gfx90a6e1f.kdb", []),
        ("gfxinfo.txt", []),
    ],
)
def test_targets_are_found_in_names(path: str, targets: list[str]) -> None:
    assert [str(target) for target in targets_in_path(path)] == targets


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Kernels.so-000-gfx1030.hsaco", True),
        ("TensileLibrary_lazy_gfx942.dat", True),
        ("gfx90878.kdb", True),
        ("gfx1030_36.fdb.txt", True),
        ("gfx908.tn.model", True),
        ("gfx906.txt", False),
        ("gfx906.hpp", False),
        ("rocblas-gfx906.cmake", False),
        ("libMIOpenCK_gfx906.so", False),
    ],
)
def test_files_of_kernel_libraries_are_recognized_by_their_names(name: str, *, expected: bool) -> None:
    assert is_kernel_file(name) is expected


@pytest.mark.parametrize(
    ("path", "targets"),
    [("library/x_gfx942.dat", {"gfx942"}), ("library/x.dat", set()), ("share/about_gfx942.txt", set())],
)
def test_the_names_of_kernel_files_alone_say_what_they_are_for(path: str, targets: set[str]) -> None:
    assert kernel_targets(path) == targets


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("lib/library/x_gfx942.dat", "lib/library/"),
        ("lib/library/gfx90a/x.co", "lib/library/*/"),
        (".kpack/blas_gfx906.kpack", ".kpack/blas_*.kpack"),
        ("lib/liba.so.1", "lib/liba.so.1"),
    ],
)
def test_kernel_files_are_of_the_library_of_their_folder(path: str, library: str) -> None:
    assert library_of(path) == library
