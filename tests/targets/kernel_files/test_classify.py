"""Tests of the targets that kernel files are for by their paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.kernel_files import classify_path, is_unknown_kernel_file, shared_row

TENSILE = "TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk"
DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("path", "target", "rule"),
    [
        (f"lib/rocblas/library/{TENSILE}_gfx1030.co", "gfx1030", "rocblas"),
        (f"lib/rocblas/library/{TENSILE}_fallback_gfx906-xnack-.hsaco", "gfx906", "rocblas"),
        ("lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a", "rocblas"),
        ("lib/rocblas/library/TensileLibrary_lazy_gfx942.dat", "gfx942", "rocblas"),
        ("lib/rocblas/library/TensileLibrary_lazy_gfx942.dat.zlib", "gfx942", "rocblas"),
        ("lib/rocblas/library/gfx942/TensileManifest.txt", "gfx942", "rocblas"),
        (f"lib/rocblas/library/gfx942/{TENSILE}_fallback.dat", "gfx942", "rocblas"),
        ("lib/rocblas/library/gfx90a-xnack+/x.co", "gfx90a", "rocblas"),
        ("lib/rocblas/library/gfx1250-strict/x.co", "gfx1250-strict", "rocblas"),
        ("lib/rocblas/library/TensileLibrary_gfx1250-strict.dat", "gfx1250-strict", "rocblas"),
        ("lib/rocblas/library/TensileLibrary_gfx1250.dat", "gfx1250", "rocblas"),
        (f"usr/lib/x86_64-linux-gnu/rocblas/5/library/{TENSILE}_gfx906.dat", "gfx906", "rocblas"),
        ("rocblas/library/TensileLibrary_lazy_gfx9-4-generic.dat", "gfx9-4-generic", "rocblas"),
        (r"rocblas\library\gfx1100\x.dat", "gfx1100", "rocblas"),
        ("lib/hipblaslt/library/extop_gfx1201.co", "gfx1201", "hipblaslt"),
        ("lib/hipblaslt/library/gfx950/hipblasltExtOpLibrary.dat", "gfx950", "hipblaslt"),
        ("lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping_gfx950.dat.zlib", "gfx950", "hipblaslt"),
        ("lib/hipsparselt/library/x_gfx942.co", "gfx942", "hipsparselt"),
        ("lib/hipsparselt/library/gfx942/x.dat", "gfx942", "hipsparselt"),
        ("share/miopen/db/gfx90a6e.HIP.fdb.txt", "gfx90a", "miopen"),
        ("share/miopen/db/gfx90878.kdb", "gfx908", "miopen"),
        ("share/miopen/db/gfx942130.db.txt", "gfx942", "miopen"),
        ("share/miopen/db/gfx1030_36.OpenCL.fdb.txt", "gfx1030", "miopen"),
        ("share/miopen/db/gfx908_ConvAsm1x1U_decoder.ktn.model", "gfx908", "miopen"),
        ("share/miopen/db/gfx1103_6.db.txt", "gfx1103", "miopen"),
        ("share/miopen/db/gfx1152.tn.model", "gfx1152", "miopen"),
        ("share/miopen/db/gfx90c08.kdb", "gfx90c", "miopen"),
        ("share/miopen/db/gfx1250-strict256.HIP.fdb.txt", "gfx1250-strict", "miopen"),
        ("share/miopen/db/gfx1250-strict_256.db.txt", "gfx1250-strict", "miopen"),
        ("share/miopen/db/gfx1250256.HIP.fdb.txt", "gfx1250", "miopen"),
        ("lib/libMIOpenCKGroupedConv_gfx942.so", "gfx942", "miopen-ck"),
        ("lib/libMIOpenCKGroupedConv_gfx942.so.1.0", "gfx942", "miopen-ck"),
        ("bin/MIOpenCKGroupedConv_gfx1151.dll", "gfx1151", "miopen-ck"),
        ("lib/libMIOpenCKGroupedConv_gfx1250-strict.so", "gfx1250-strict", "miopen-ck"),
        ("lib/libdevice_conv_operations_gfx950_xnackp.a", "gfx950", "composable-kernel"),
        ("lib/libdevice_conv_operations_gfx90a_xnack_.a", "gfx90a", "composable-kernel"),
        ("lib/libdevice_conv_operations_gfx1250_strict.a", "gfx1250-strict", "composable-kernel"),
        ("lib/device_conv_operations_gfx1100.lib", "gfx1100", "composable-kernel"),
        ("lib/rocfft/rocfft_kernel_cache_gfx1100.db", "gfx1100", "rocfft"),
        ("lib/rocfft_kernel_cache_gfx90a.db", "gfx90a", "rocfft"),
        ("lib/aotriton.images/amd-gfx942/flash/attn_fwd/kernel.aks2", "gfx942", "aotriton"),
        ("lib/aotriton.images/amd-gfx11xx/flash/x.aks2", "gfx11", "aotriton"),
        ("lib/aotriton.images/amd-gfx110x/flash/x.aks2", "gfx110x", "aotriton"),
        ("torch/lib/aotriton.images/amd-gfx115x/__signature__", "gfx115x", "aotriton"),
        ("lib/aotriton.images/amd-gfx120x/flash/flyc_attn_fwd.zip", "gfx12_0", "aotriton"),
        ("lib/aotriton.images/amd-gfx13x/flash/x.aks2", "gfx13x", "aotriton"),
        ("lib/hipdnn_plugins/engines/arch_content/rocke/gfx942/a/b.hsaco", "gfx942", "hip-kernel-provider"),
        ("lib/x/engines/arch_content/gfx950/k.json", "gfx950", "hip-kernel-provider"),
        ("engines/test_arch_content/hip-kernel-provider/unit/shared/gfx90a/x", "gfx90a", "hip-kernel-provider"),
        ("engines/arch_content/p/gfx942/gfx90a/x", "gfx942", "hip-kernel-provider"),
        (f"share/rocjitsu/translations/gfx1250-b0-a0/v1/{DIGEST}.man", "gfx1250", "hotswap"),
        (".kpack/blas_lib_gfx90a.kpack", "gfx90a", "kpack"),
        (".kpack/blas_lib_gfx90a:xnack+.kpack", "gfx90a", "kpack"),
        ("torch/.kpack/rccl_lib_gfx11-generic.kpack", "gfx11-generic", "kpack"),
    ],
)
def test_kernel_files_belong_to_a_target(path: str, target: str, rule: str) -> None:
    found = classify_path(path)
    assert found is not None
    assert (found.target, found.rule) == (target, rule)


@pytest.mark.parametrize(
    "path",
    [
        f"lib/rocblas/library/{TENSILE}_fallback.dat",
        "lib/rocblas/library/TensileManifest.txt",
        "lib/rocblas/library/README_gfx906.txt",
        "lib/rocblas/library/x_gfx1250-b0.co",
        "lib/rocblas/library/x_gfx12345.co",
        "lib/rocblas/library/xgfx906.co",
        "lib/hipblaslt/library/gfx1250v0/x.co",
        "lib/hipblaslt/library/hipblasltExtOpLibrary.dat",
        "lib/hipblaslt/library/gfx906",
        "lib/myrocblas/library/x_gfx906.co",
        "lib/librocblas.so",
        "lib/libMIOpen.so.1",
        "lib/libdevice_conv_operations.a",
        "lib/libdevice_gemm_operations_gfx942.a",
        "lib/rocfft/rocfft_kernel_cache.db",
        "share/miopen/db/miopen.db",
        "share/miopen/db/gfx90a6e1f.kdb",
        "share/miopen/db/x_gfx906.kdb",
        "include/rocblas/gfx906.hpp",
        "lib/cmake/rocblas/library-gfx906.cmake",
        "lib/aotriton.images/README-gfx942",
        "share/rocjitsu/translations/gfx1250-b0-a0/v2/x.man",
        "share/rocjitsu/translations/gfx942-b0-a0/v1/x.man",
        "share/rccl/msccl-algorithms/allreduce-gfx942.xml",
        "",
    ],
)
def test_other_files_belong_to_none(path: str) -> None:
    assert classify_path(path) is None


@given(
    st.sampled_from([target.name for target in load_catalog().targets]),
    st.sampled_from(["", "_24", "24", "6e", "130"]),
    st.sampled_from([".kdb", ".db.txt", ".HIP.fdb.txt", ".tn.model"]),
)
def test_miopen_knows_every_target_of_the_catalog(target: str, units: str, suffix: str) -> None:
    found = classify_path(f"share/miopen/db/{target}{units}{suffix}")
    assert found is not None
    assert found.target == target


@pytest.mark.parametrize(
    ("path", "name", "differs"),
    [
        (f"lib/rocblas/library/{TENSILE}_fallback.dat", "tensile-fallbacks", "refuse"),
        ("lib/rocblas/5/library/x_fallback.dat", "tensile-fallbacks", "refuse"),
        ("lib/hipblaslt/1/library/x_fallback.dat", "tensile-fallbacks", "refuse"),
        ("lib/hipsparselt/library/x_fallback.dat.zlib", "tensile-fallbacks", "refuse"),
        ("lib/hipblaslt/library/TensileManifest.txt", "tensile-manifests", "lines"),
        ("lib/hipblaslt/library/hipblasltExtOpLibrary.dat", "hipblaslt-ext-ops", "maps"),
        ("lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat", "tensile-mappings", "refuse"),
        ("lib/rocfft/rocfft_kernel_cache.db", "rocfft-cache", "refuse"),
    ],
)
def test_files_for_all_gpus_have_a_row(path: str, name: str, differs: str) -> None:
    row = shared_row(path)
    assert row is not None
    assert (row.name, row.differs.value) == (name, differs)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lib/hipblaslt/library/gfx1250v0/x.co", True),
        ("share/other/x_gfx906.hsaco", True),
        ("lib/rocblas/library/x_gfx906.co", False),
        ("lib/rocblas/library/x_fallback.dat", False),
        ("lib/librocblas.so", False),
    ],
)
def test_kernel_files_that_no_row_knows_are_told(path: str, *, expected: bool) -> None:
    assert is_unknown_kernel_file(path) is expected


_PARTS = st.sampled_from(
    [
        "gfx90a",
        "gfx1250-strict",
        "gfx",
        "-xnack+",
        "library",
        "rocblas",
        "/",
        "//",
        "_",
        ".co",
        ".kdb",
        "miopen/db/",
        "\n",
        "x",
    ]
)


@given(st.lists(_PARTS | st.text(max_size=4), max_size=12).map("".join))
def test_no_path_makes_the_rules_fail(path: str) -> None:
    found = classify_path(path)
    assert found is None or found.target.startswith("gfx")
    assert not (found and is_unknown_kernel_file(path))
    shared_row(path)
