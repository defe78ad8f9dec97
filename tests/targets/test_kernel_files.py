"""Tests of `rocwheel.targets.kernel_files`."""

from __future__ import annotations

import bz2
import lzma
import sqlite3
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import known_processors
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.kernel_files import (
    MismatchError,
    check_kernel_file,
    classify_path,
    is_kernel_file,
    is_unknown_kernel_file,
    kernel_targets,
    library_of,
    load_table,
    processors_in,
    shared_row,
    targets_in_path,
)
from tests.support.code_objects import code_object_header
from tests.support.damage import damaged

if TYPE_CHECKING:
    from pathlib import Path


def test_every_row_has_explained_sources_and_every_source_is_used() -> None:
    table = load_table()
    rows = (*table.rules, *table.openers, *table.self_contained, *table.shared, *table.families)
    used = {source for row in rows for source in row.sources}
    assert all(row.sources for row in rows)
    assert used == set(table.sources)


def test_every_rule_gets_its_target_from_either_a_placeholder_or_a_fixed_value() -> None:
    for rule in load_table().rules:
        assert all(("{" in pattern) != bool(rule.target) for pattern in rule.files), rule.name


def test_families_contain_known_processors() -> None:
    known = {*known_processors(), "gfx1250-strict"}
    assert all(known.issuperset(family.targets) for family in load_table().families)


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
def test_kernel_library_files_are_recognized_by_name(name: str, *, expected: bool) -> None:
    assert is_kernel_file(name) is expected


@pytest.mark.parametrize(
    ("path", "targets"),
    [("library/x_gfx942.dat", {"gfx942"}), ("library/x.dat", set()), ("share/about_gfx942.txt", set())],
)
def test_only_names_of_kernel_files_determine_targets(path: str, targets: set[str]) -> None:
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
def test_kernel_files_belong_to_the_library_of_their_folder(path: str, library: str) -> None:
    assert library_of(path) == library


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
def test_other_files_belong_to_no_target(path: str) -> None:
    assert classify_path(path) is None


@given(
    st.sampled_from([target.name for target in load_catalog().targets]),
    st.sampled_from(["", "_24", "24", "6e", "130"]),
    st.sampled_from([".kdb", ".db.txt", ".HIP.fdb.txt", ".tn.model"]),
)
def test_miopen_rules_cover_every_target_in_the_catalog(target: str, units: str, suffix: str) -> None:
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
def test_kernel_files_without_a_row_are_recognized_as_unknown(path: str, *, expected: bool) -> None:
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
def test_no_path_causes_an_error_in_the_rules(path: str) -> None:
    found = classify_path(path)
    assert found is None or found.target.startswith("gfx")
    assert not (found and is_unknown_kernel_file(path))
    shared_row(path)


MakeDatabase = Callable[..., bytes]


def image(*codes: bytes) -> bytes:
    """Return an image of AOTriton; an empty code stands for a kernel that is left out."""
    directory, offset = b"", 0
    for code in codes:
        directory += struct.pack("<IIIII", 0, 0, offset, len(code), 2) + b"k\0"
        offset += len(code)
    content = directory + b"".join(codes)
    return struct.pack("<4sIII", b"AKS2", len(content), len(codes), len(directory)) + lzma.compress(content)


@pytest.fixture
def kdb(tmp_path: Path) -> MakeDatabase:
    """Return a function that makes MIOpen's database: options and stored code of each kernel."""

    def make(*kernels: tuple[str, bytes, int]) -> bytes:
        path = tmp_path / "x.kdb"
        with sqlite3.connect(path) as database:
            database.execute(
                "CREATE TABLE kern_db (id INTEGER PRIMARY KEY, kernel_name TEXT, kernel_args TEXT, "
                "kernel_blob BLOB, kernel_hash TEXT, uncompressed_size INT)"
            )
            rows = [(f"k{i}", *kernel) for i, kernel in enumerate(kernels)]
            database.executemany(
                "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, uncompressed_size) VALUES (?, ?, ?, ?)",
                rows,
            )
        database.close()
        return path.read_bytes()

    return make


def problems(data: bytes, path: str) -> list[str]:
    return [str(problem) for problem in check_kernel_file(memoryview(data), path)]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("rocblas/library/x_gfx90a-xnack+.hsaco", "gfx90a:xnack+"),
        ("rocblas/library/x_gfx90a.co", "gfx90a:xnack-"),
        ("rocblas/library/gfx942/x.co", "gfx942"),
        ("rocblas/library/x_gfx1031.co", "gfx10-3-generic"),
        ("rocblas/library/x_gfx11-generic.co", "gfx11-generic"),
        ("lib/aotriton.images/amd-gfx11xx/x.co", "gfx1151"),
        ("lib/aotriton.images/amd-gfx13x/x.co", "gfx1151"),
        ("lib/unknown/x_gfx906.co", "gfx942"),
    ],
)
def test_code_for_the_target_in_the_name_is_accepted(path: str, target: str) -> None:
    assert problems(code_object_header(target), path) == []


@pytest.mark.parametrize(
    ("path", "named", "target"),
    [
        ("rocblas/library/x_gfx90a.hsaco", "gfx90a", "gfx906"),
        ("rocblas/library/gfx942/x_gfx942.co", "gfx942", "gfx90a"),
        ("rocblas/library/x_gfx1250-strict.co", "gfx1250-strict", "gfx1250"),
        ("rocblas/library/x_gfx1100.co", "gfx1100", "gfx10-3-generic"),
        ("lib/aotriton.images/amd-gfx110x/x.co", "gfx110x", "gfx1151"),
    ],
)
def test_code_for_another_gpu_is_a_problem_that_names_both_targets(path: str, named: str, target: str) -> None:
    (problem,) = check_kernel_file(memoryview(code_object_header(target)), path, name="place")
    assert isinstance(problem, MismatchError)
    assert (problem.source, problem.named, problem.contained) == ("place", named, (target,))


@pytest.mark.parametrize("data", [b"", b"text", b"\x82\xa1a\x01"], ids=["empty", "text", "msgpack"])
@pytest.mark.parametrize(
    "path", ["rocblas/library/x_gfx90a.co", "miopen/db/gfx906_60.kdb", "engines/arch_content/gfx942/x"]
)
def test_files_with_unknown_content_are_not_a_problem(path: str, data: bytes) -> None:
    assert problems(data, path) == []


def table(*processors: str) -> bytes:
    """Return a table of Tensile with a row for each processor, as its writer encodes it."""
    rows = [
        {"predicate": {"type": "AMDGPU", "value": {"type": "Processor", "value": name}}, "library": {"index": 0}}
        for name in processors
    ]
    return msgspec.msgpack.encode({"solutions": [], "library": {"type": "Hardware", "rows": rows}})


@pytest.mark.parametrize(
    ("path", "processors"),
    [
        ("rocblas/library/TensileLibrary_lazy_gfx906.dat", ("gfx906",)),
        ("rocblas/library/TensileLibrary_lazy_gfx906.dat", ("gfx900", "gfx906")),
        ("rocblas/library/TensileLibrary_lazy_gfx906.dat", ()),
        ("rocblas/library/TensileLibrary_lazy_gfx906.dat", ("gfx9999",)),
        ("rocblas/library/TensileLibrary_lazy_gfx9-4-generic.dat", ("gfx942",)),
        ("hipblaslt/library/gfx1250-strict/TensileLibrary_lazy_gfx1250-strict.dat", ("gfx1250",)),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_table_for_the_target_in_its_name_is_accepted(
    path: str, processors: tuple[str, ...], *, is_packed: bool
) -> None:
    data = table(*processors)
    assert problems(zlib.compress(data) if is_packed else data, path + ".zlib" * is_packed) == []


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_table_for_hardware_other_than_in_its_name_is_a_problem(*, is_packed: bool) -> None:
    path = "rocblas/library/TensileLibrary_lazy_gfx906.dat" + ".zlib" * is_packed
    data = bytes(5 << 20) + table("gfx90a", "gfx942")
    found = f"{path}: is named for gfx906, but contains code for gfx90a, gfx942"
    remedy = "expected code for the target in the name. Rename or rebuild the file."
    assert problems(zlib.compress(data) if is_packed else data, path) == [f"{found}; {remedy}"]


@given(damaged([zlib.compress(table("gfx942")), table("gfx942")]), st.sampled_from([".dat", ".dat.zlib"]))
def test_no_table_causes_an_unexpected_error_in_the_reader(content: bytes, suffix: str) -> None:
    assert len(problems(content, f"rocblas/library/TensileLibrary_lazy_gfx906{suffix}")) <= 1


def test_a_miopen_database_is_identified_by_its_options_and_code(kdb: MakeDatabase) -> None:
    good = ("-DX=1 -mcpu=gfx908", bz2.compress(code_object_header("gfx908")), 64)
    data = kdb(good)
    assert problems(data, "share/miopen/db/gfx90878.kdb") == []
    (problem,) = problems(data, "share/miopen/db/gfx90a6e.kdb")
    assert problem == (
        "share/miopen/db/gfx90a6e.kdb: is named for gfx90a, but contains code for gfx908; "
        "expected code for the target in the name. Rename or rebuild the file."
    )


@pytest.mark.parametrize(
    "kernel",
    [
        ("-mcpu=gfx906", b"", 0),
        ("", bz2.compress(code_object_header("gfx906")), 64),
        ("", code_object_header("gfx906"), 0),
    ],
    ids=["options", "compressed", "stored"],
)
def test_options_and_stored_or_compressed_code_identify_the_processor_of_a_database(
    kdb: MakeDatabase, kernel: tuple[str, bytes, int]
) -> None:
    assert processors_in(memoryview(kdb(kernel)), name="x.kdb") == ("gfx906",)


def test_a_database_with_damaged_kernels_is_a_problem(kdb: MakeDatabase) -> None:
    (problem,) = problems(kdb(("", b"BZh9 damaged", 64)), "miopen/db/gfx906.kdb")
    assert "a kernel that can't be decompressed" in problem


KERN_DB = "CREATE TABLE kern_db (kernel_args TEXT, kernel_blob BLOB, uncompressed_size INT)"


def database_of(path: Path, *statements: str) -> bytes:
    """Return the bytes of a database that statements have made."""
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path.read_bytes()


def test_a_truncated_database_is_a_problem(kdb: MakeDatabase) -> None:
    (problem,) = problems(kdb(("", b"", 0))[:1000], "miopen/db/gfx906.kdb")
    assert "a database that can't be read" in problem


def test_a_database_with_a_false_record_size_is_a_problem(tmp_path: Path) -> None:
    """Its size, number and header are all ones; SQLite says that it has no memory for it."""
    data = bytearray(database_of(tmp_path / "x.kdb", "PRAGMA page_size = 512", KERN_DB))
    schema = data.index(b"tablekern_db")
    data[schema - 9 : schema + 8] = b"\xff" * 17
    (problem,) = problems(bytes(data), "miopen/db/gfx906.kdb")
    assert "a database that can't be read (SQLite requests more memory than any such database needs)" in problem


def test_a_database_with_an_endless_view_as_its_table_is_not_queried(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(arch) AS (VALUES(1) UNION ALL SELECT arch + 1 FROM n) SELECT * FROM n"
    data = database_of(tmp_path / "x.db", f"CREATE VIEW cache_v1 AS {endless}")
    assert problems(data, "rocfft_kernel_cache_gfx906.db") == []


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_a_database_with_generated_columns_is_a_problem(tmp_path: Path, kind: str) -> None:
    """Of a virtual column, each row would be made of 800 MB as it is read."""
    size = 400_000_000 if kind == "VIRTUAL" else 4
    table = f"CREATE TABLE cache_v1 (x INT, arch TEXT AS (hex(zeroblob({size}))) {kind})"
    data = database_of(tmp_path / "x.db", table, "INSERT INTO cache_v1 (x) VALUES (1)")
    (problem,) = problems(data, "rocfft_kernel_cache_gfx906.db")
    assert "a table cache_v1 whose column 'arch' is generated or hidden; expected stored columns" in problem


@pytest.mark.skipif(sys.version_info < (3, 11), reason="limits of SQLite need Python 3.11")
def test_a_database_with_a_value_larger_than_64_mib_is_a_problem(tmp_path: Path) -> None:
    data = database_of(tmp_path / "x.kdb", KERN_DB, "INSERT INTO kern_db VALUES ('', zeroblob(68000000), 0)")
    (problem,) = problems(data, "miopen/db/gfx906.kdb")
    assert "a database that can't be read (string or blob too big)" in problem


def test_a_virtual_table_is_not_queried(tmp_path: Path) -> None:
    table = "CREATE VIRTUAL TABLE cache_v1 USING rtree(arch, low, high)"
    data = database_of(tmp_path / "x.db", table, "INSERT INTO cache_v1 VALUES (1, 2, 3)")
    assert problems(data, "rocfft_kernel_cache_gfx906.db") == []


def test_reading_a_database_leaves_no_copy(kdb: MakeDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    processors_in(memoryview(kdb(("-mcpu=gfx906", b"", 0))), name="x.kdb")
    assert list(folder.iterdir()) == []


def test_an_aotriton_image_is_identified_by_all_its_kernels() -> None:
    data = image(code_object_header("gfx1100"), b"", code_object_header("gfx1151") + bytes(100), b"x")
    assert processors_in(memoryview(data), name="x.aks2") == ("gfx1100", "gfx1151")
    assert problems(data, "lib/aotriton.images/amd-gfx11xx/x.aks2") == []
    assert len(problems(data, "lib/aotriton.images/amd-gfx110x/x.aks2")) == 1


GOOD = image(code_object_header("gfx1100"))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (GOOD[:10], "no image header"),
        (GOOD[:40], "can't be decompressed"),
        (struct.pack("<4sIII", b"AKS2", 86, 90, 22) + GOOD[16:], "90 kernels in a directory of 22 bytes"),
        (struct.pack("<4sIII", b"AKS2", 86, 1, 99) + GOOD[16:], "a directory of 99"),
        (struct.pack("<4sIII", b"AKS2", 30, 1, 22) + GOOD[16:], "a kernel of 64 bytes at offset 0 in 8 bytes"),
        (struct.pack("<4sIII", b"AKS2", 1 << 31, 1, 22) + GOOD[16:], "an image of 2147483648 bytes"),
        (struct.pack("<4sIII", b"AKS2", (4 << 20) + 1, 1, 22) + GOOD[16:], "an image of 4194305 bytes"),
        (b"AKS2" + GOOD[4:16] + b"no xz", "can't be decompressed"),
    ],
)
def test_damaged_images_are_problems(data: bytes, found: str) -> None:
    (problem,) = problems(data, "lib/aotriton.images/amd-gfx1100/x.aks2")
    assert found in problem


@given(damaged([GOOD, image(code_object_header("gfx942"), code_object_header("gfx90a"))]))
def test_no_image_causes_an_unexpected_error_in_the_reader(data: bytes) -> None:
    assert all(isinstance(p, InputError) for p in check_kernel_file(memoryview(data), "aotriton.images/amd-gfx942/x"))


@given(st.data())
def test_no_database_causes_an_unexpected_error_in_the_reader(data: st.DataObject) -> None:
    content = data.draw(damaged([_database()]))
    with suppress(InputError):
        processors_in(memoryview(content), name="x.kdb")


def _database() -> bytes:
    if sys.version_info < (3, 11):
        pytest.skip("databases in memory need Python 3.11")
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE cache_v1 (arch TEXT)")
        database.execute("INSERT INTO cache_v1 VALUES ('gfx906')")
        database.execute("CREATE TABLE kern_db (kernel_args TEXT, kernel_blob BLOB, uncompressed_size INT)")
        row = ("-mcpu=gfx906", bz2.compress(code_object_header("gfx906")), 64)
        database.execute("INSERT INTO kern_db VALUES (?, ?, ?)", row)
        database.commit()
        return database.serialize()
