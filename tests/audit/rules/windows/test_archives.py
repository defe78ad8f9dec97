"""DLLs whose device code is in kpack archives."""

from __future__ import annotations

import pytest

from rocwheel.audit.finding import Severity
from rocwheel.environment.tree import Distribution
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import data, dll, find, tree, windows_package

LIBRARIES = windows_package("rocm-sdk-libraries")
DEVICE = windows_package("rocm-sdk-device-gfx1100")
PATH = "../.kpack/blas_lib_@GFXARCH@.kpack"
ARCHIVE = "_rocm_sdk_libraries/.kpack/blas_lib_gfx1100.kpack"


BREACHES = {
    "image-archives": Breach(
        one(
            dll("_rocm_sdk_libraries/bin/rocsparse.dll", archives=(PATH,)),
            data("_rocm_sdk_libraries/bin/.kpack/blas_lib_gfx1100.kpack"),
            owner=LIBRARIES,
        ),
        "_rocm_sdk_libraries/bin/rocsparse.dll",
        "looks for its device code in '../.kpack/blas_lib_@GFXARCH@.kpack', which doesn't exist; the folder contains "
        "_rocm_sdk_libraries/bin/.kpack/blas_lib_gfx1100.kpack",
    )
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_an_archive_in_another_package_is_found_from_the_bin_folder() -> None:
    library = dll("_rocm_sdk_libraries/bin/rocsparse.dll", archives=(PATH,))
    assert find(tree((LIBRARIES, [library]), (DEVICE, [data(ARCHIVE)])), select=("image-*",)) == []


def test_missing_packages_with_archives_are_an_error_only_in_a_closed_set() -> None:
    audited = one(dll("_rocm_sdk_libraries/bin/rocsparse.dll", archives=(PATH,)), owner=LIBRARIES)
    assert find(audited) == []
    assert [finding.rule for finding in find(audited, closed=True)] == ["image-archives"]


def test_archives_missing_from_a_folder_are_an_error_only_in_a_closed_set() -> None:
    folder = Distribution(name="", version="", source="prefix", dist_info="")
    audited = tree((folder, [dll("bin/rocblas.dll", archives=(PATH,))]))
    assert find(audited, select=("image-*",)) == []
    (finding,) = find(audited, select=("image-*",), closed=True)
    assert (finding.rule, finding.severity) == ("image-archives", Severity.ERROR)
    assert finding.found.endswith("which no given package has")


def test_archives_must_be_installed_in_an_environment() -> None:
    owner = Distribution(name="demo", version="1.0", source="demo", dist_info="demo-1.0.dist-info")
    files = [dll("demo/a.dll", archives=(PATH,)), data("demo-1.0.dist-info/INSTALLER")]
    audited = tree((owner, files))
    assert [one.rule for one in find(audited, select=("image-*",))] == ["image-archives"]
    assert find(audited, select=("image-*",), closed=False) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (r"C:\build\.kpack\a_@GFXARCH@.kpack", "is a path on the build machine"),
        ("/build/.kpack/a_@GFXARCH@.kpack", "is a path on the build machine"),
        ("../../../.kpack/a_@GFXARCH@.kpack", "is outside the installed files"),
    ],
)
def test_archive_paths_that_cannot_exist_are_reported(path: str, problem: str) -> None:
    (finding,) = find(one(dll("_rocm_sdk_libraries/bin/a.dll", archives=(path,)), owner=LIBRARIES))
    assert finding.found.endswith(f", which {problem}")


def test_any_of_several_archive_paths_may_exist() -> None:
    library = dll("_rocm_sdk_libraries/bin/a.dll", archives=("/build/x.kpack", PATH))
    assert find(one(library, data(ARCHIVE), owner=LIBRARIES)) == []


def test_a_file_with_inconsistent_archive_information_is_reported() -> None:
    library = dll("demo/a.dll", kpack_fault="has a section .kpackrf, but no wrapper that points to a kpack archive")
    assert brief(find(one(library, owner=windows_package()))) == [
        (
            "image-archives",
            "demo/a.dll",
            "can't load its device code: has a section .kpackrf, but no wrapper that points to a kpack archive",
        )
    ]
