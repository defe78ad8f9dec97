"""Tests of which library has code for which GPU."""

from __future__ import annotations

import pytest

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.report.make_report import code_for, make_matrix
from rocwheel.report.values import Code, FileFacts, Kind, LostCode, MatrixRow, PackageFacts, Part

PACKAGES = tuple(PackageFacts(label=name, kind=Kind.WHEEL, source=name) for name in ("host", "device-a", "device-b"))


def file_for(path: str, *targets: str, package: int = 0) -> FileFacts:
    """Return a file with code for some targets."""
    parts = tuple(Part(target, 1) for target in ("", *targets))
    return FileFacts(package=package, component="lib", path=path, size=len(parts), parts=parts)


@pytest.mark.parametrize(
    ("codes", "gpu", "expected"),
    [
        (["gfx906"], "gfx906", Code.EXACT),
        (["gfx90a:xnack+"], "gfx90a", Code.PARTLY),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a", Code.EXACT),
        (["gfx11-generic"], "gfx1100", Code.GENERIC),
        (["gfx11-generic", "gfx1100"], "gfx1100", Code.EXACT),
        (["amdgcnspirv"], "gfx1100", Code.SPIRV),
        (["gfx906"], "gfx908", Code.MISSING),
        ([], "gfx908", Code.MISSING),
    ],
)
def test_the_best_code_counts(codes: list[str], gpu: str, expected: Code) -> None:
    assert code_for([parse_target_id(code) for code in codes], TargetId(gpu)) is expected


def test_libraries_that_lack_a_gpu_of_others_show_it() -> None:
    matrix = make_matrix(PACKAGES, [file_for("lib/a.so", "gfx1100", "gfx906"), file_for("lib/b.so", "gfx906")])
    assert matrix.gpus == ("gfx906", "gfx1100")
    assert matrix.rows == (
        MatrixRow("lib/a.so", ("host",), ("gfx1100", "gfx906"), (Code.EXACT, Code.EXACT)),
        MatrixRow("lib/b.so", ("host",), ("gfx906",), (Code.EXACT, Code.MISSING)),
    )


def test_kernel_files_of_several_packages_are_one_library() -> None:
    files = [
        file_for("lib/rocblas/library/T_gfx906.dat", "gfx906", package=1),
        file_for("lib/rocblas/library/K_gfx942.hsaco", "gfx942", package=2),
        file_for(".kpack/blas_gfx906.kpack", "gfx906", package=1),
        file_for(".kpack/blas_gfx942.kpack", "gfx942", package=2),
    ]
    rows = make_matrix(PACKAGES, files).rows
    assert [(row.library, row.packages) for row in rows] == [
        (".kpack/blas_*.kpack", ("device-a", "device-b")),
        ("lib/rocblas/library/", ("device-a", "device-b")),
    ]
    assert {code for row in rows for code in row.codes} == {Code.EXACT}


def test_libraries_of_several_packages_at_one_path_are_several() -> None:
    files = [file_for("lib/a.so", "gfx906", package=1), file_for("lib/a.so", "gfx942", package=2)]
    rows = make_matrix(PACKAGES, files).rows
    assert [(row.library, row.packages, row.targets) for row in rows] == [
        ("lib/a.so", ("device-a",), ("gfx906",)),
        ("lib/a.so", ("device-b",), ("gfx942",)),
    ]


def test_generic_code_stands_for_all_its_gpus() -> None:
    matrix = make_matrix(PACKAGES, [file_for("a.so", "gfx9-4-generic")])
    assert {"gfx940", "gfx941", "gfx942"} & set(matrix.gpus)
    assert "gfx9-4-generic" not in matrix.gpus
    assert set(matrix.rows[0].codes) == {Code.GENERIC}


def test_what_is_no_target_of_amd_is_no_column() -> None:
    matrix = make_matrix(PACKAGES, [file_for("a.so", "sm_90")])
    assert (matrix.gpus, [row.targets for row in matrix.rows]) == ((), [("sm_90",)])


def test_files_without_device_code_are_no_libraries() -> None:
    assert make_matrix(PACKAGES, [FileFacts(package=0, component="lib", path="a.so", size=3)]).rows == ()


def test_code_that_is_lost_is_none() -> None:
    files = [file_for("lib/librocblas.so.5", "gfx906", "gfx1030"), file_for("lib/b.so", "gfx906", "gfx1030")]
    matrix = make_matrix(PACKAGES, files, [LostCode("lib/librocblas.so.5", "", ("gfx906",))])
    assert matrix.gpus == ("gfx906", "gfx1030")
    assert [row.codes for row in matrix.rows] == [(Code.EXACT, Code.EXACT), (Code.MISSING, Code.EXACT)]
