"""``rocm-sdk doctor`` finds a second ROCm that may be loaded in place of the packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

REMOVE_SECOND = (
    "If you don't need it, remove its package: dpkg --search /opt/rocm-6.4 || rpm --query --file /opt/rocm-6.4"
)
Make = Callable[..., Any]


def test_libraries_that_shadow_the_packages_are_reported(environment: Any, diagnose: Make) -> None:
    findings = diagnose(
        environment, 90006, files=("/usr/lib/old/libamdhip64.so.5",), LD_LIBRARY_PATH="/usr/lib/old:/usr/lib/none"
    )
    assert findings == [
        [
            "warning",
            "LD_LIBRARY_PATH makes programs search /usr/lib/old first, which has libamdhip64.so.5",
            "unset LD_LIBRARY_PATH",
        ]
    ]


@pytest.mark.parametrize(
    ("value", "library", "folder"),
    [
        pytest.param("old", "/usr/lib/old/libamdhip64.so.5", "/usr/lib/old", id="relative"),
        pytest.param("../old", "/usr/old/libamdhip64.so.5", "/usr/old", id="relative, upwards"),
        pytest.param("/nowhere:", "/usr/lib/libamdhip64.so.5", "/usr/lib", id="empty entry"),
    ],
)
def test_relative_folders_are_resolved_against_the_working_directory(
    environment: Any, diagnose: Make, value: str, library: str, folder: str
) -> None:
    text = f"LD_LIBRARY_PATH makes programs search {folder} first, which has libamdhip64.so.5"
    findings = diagnose(environment, 90006, files=(library,), LD_LIBRARY_PATH=value)
    assert findings[:1] == [["warning", text, "unset LD_LIBRARY_PATH"]]


def test_semicolons_separate_folders_in_the_library_path(environment: Any, diagnose: Make) -> None:
    text = "LD_LIBRARY_PATH makes programs search /old first, which has libamdhip64.so.5"
    findings = diagnose(environment, 90006, files=("/old/libamdhip64.so.5",), LD_LIBRARY_PATH="/nowhere;/old")
    assert findings == [["warning", text, "unset LD_LIBRARY_PATH"]]


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        pytest.param("/nowhere:", "an empty entry", id="at the end"),
        pytest.param(":/nowhere", "an empty entry", id="at the start"),
        pytest.param("/nowhere:lib", "the relative entry lib", id="relative"),
        pytest.param(".", "the relative entry .", id="dot"),
    ],
)
def test_entries_that_mean_the_working_directory_are_reported(
    environment: Any, diagnose: Make, value: str, entry: str
) -> None:
    text = f"LD_LIBRARY_PATH={value} has {entry}, so programs load libraries from the working directory"
    assert diagnose(environment, 90006, LD_LIBRARY_PATH=value) == [["warning", text, "unset LD_LIBRARY_PATH"]]


@pytest.mark.parametrize("value", ["/nowhere", "$ORIGIN/../lib", "${LIB}"])
def test_other_entries_are_not_reported(environment: Any, diagnose: Make, value: str) -> None:
    assert diagnose(environment, 90006, LD_LIBRARY_PATH=value) == []


def test_a_loop_of_symlinks_is_not_a_folder(environment: Any, diagnose: Make, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    loop = str(tmp_path / "one")
    assert diagnose(environment, 90006, LD_LIBRARY_PATH=loop, ROCM_PATH=loop) == []


def test_the_hip_path_of_a_second_rocm_is_reported(environment: Any, diagnose: Make) -> None:
    findings = diagnose(environment, 90006, files=("/opt/old/lib/libamdhip64.so.5",), HIP_PATH="/opt/old")
    text = "HIP_PATH=/opt/old points compilers and frameworks to a second ROCm installation"
    assert findings == [["warning", text, "unset HIP_PATH"]]


@pytest.mark.parametrize(
    ("name", "library", "level"),
    [
        ("ROCBLAS_TENSILE_LIBPATH", "rocBLAS", "warning"),
        ("HIPBLASLT_TENSILE_LIBPATH", "hipBLASLt", "warning"),
        ("ROCSPARSELT_TENSILE_LIBPATH", "hipSPARSELt", "warning"),
        ("ROCSPARSELT_SPMM_LIBPATH", "hipSPARSELt", "warning"),
        ("MIOPEN_SYSTEM_DB_PATH", "MIOpen", "note"),
        ("ROCFFT_RTC_SYS_CACHE_PATH", "rocFFT", "note"),
    ],
)
def test_a_variable_that_points_to_other_kernels_is_reported(
    environment: Any, diagnose: Make, name: str, library: str, level: str
) -> None:
    text = f"{name}=/opt/other makes {library} look for kernels there instead of in these packages"
    assert diagnose(environment, 90006, **{name: "/opt/other"}) == [[level, text, f"unset {name}"]]


def test_an_empty_variable_is_reported_only_for_libraries_that_use_empty_values(
    environment: Any, diagnose: Make
) -> None:
    findings = diagnose(environment, 90006, ROCBLAS_TENSILE_LIBPATH="", MIOPEN_SYSTEM_DB_PATH="")
    text = "ROCBLAS_TENSILE_LIBPATH= makes rocBLAS look for kernels there instead of in these packages"
    assert findings == [["warning", text, "unset ROCBLAS_TENSILE_LIBPATH"]]


def test_a_variable_that_points_to_the_kernels_of_the_packages_is_not_reported(environment: Any) -> None:
    kernels = environment.site / "_rocm_sdk_libraries/lib/rocblas/library"
    assert kernels.is_dir()
    done = environment.run("rocm-sdk", "doctor", "--json", check=False, ROCBLAS_TENSILE_LIBPATH=str(kernels))
    assert "rocBLAS" not in done.stdout


def test_an_empty_library_path_is_ignored(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006, files=("/usr/lib/libamdhip64.so.5",), LD_LIBRARY_PATH="") == []


def test_a_second_rocm_is_reported(environment: Any, diagnose: Make) -> None:
    findings = diagnose(
        environment,
        90006,
        files=("/opt/rocm-6.4/lib/libamdhip64.so.6", "/opt/rocm-empty/lib/readme"),
        texts={"/etc/ld.so.conf.d/rocm.conf": "/opt/rocm-6.4/lib\n"},
        ROCM_PATH="/opt/rocm-6.4",
    )
    assert findings == [
        [
            "note",
            "there is a second ROCm installation in /opt/rocm-6.4, which these packages do not use",
            REMOVE_SECOND,
        ],
        [
            "warning",
            "ROCM_PATH=/opt/rocm-6.4 points compilers and frameworks to a second ROCm installation",
            "unset ROCM_PATH",
        ],
        [
            "note",
            "/etc/ld.so.conf.d/rocm.conf lets every program find the libraries of a second ROCm installation",
            "If you don't want this: sudo rm /etc/ld.so.conf.d/rocm.conf && sudo ldconfig",
        ],
    ]


def test_a_second_rocm_reachable_by_two_names_is_reported_once(
    environment: Any, diagnose: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "machine/opt"
    folder.mkdir(parents=True)
    (folder / "rocm").symlink_to("rocm-6.4")
    findings = diagnose(environment, 90006, files=("/opt/rocm-6.4/lib/libamdhip64.so.6",))
    text = "there is a second ROCm installation in /opt/rocm-6.4, which these packages do not use"
    assert findings == [["note", text, REMOVE_SECOND]]


def test_other_loader_folders_are_not_a_second_rocm(environment: Any, diagnose: Make) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"
    configuration = {"/etc/ld.so.conf.d/x86_64-linux-gnu.conf": "/usr/lib/x86_64-linux-gnu\n"}
    assert diagnose(environment, 90006, files=(library,), texts=configuration) == []


def test_the_packages_themselves_are_not_a_second_rocm(environment: Any) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    tree = environment.run("rocm-sdk", "path", "--root").stdout.strip()
    core = environment.site / "_rocm_sdk_core"
    by_link = environment.path / "lib64" / core.relative_to(environment.path / "lib")
    assert by_link.is_dir()
    for variables in (
        {"ROCM_PATH": tree, "HIP_PATH": str(core)},
        {"LD_LIBRARY_PATH": f"{tree}/lib:{core}/lib:{by_link}/lib"},
    ):
        done = environment.run("rocm-sdk", "doctor", "--json", check=False, **variables)
        levels = [finding["level"] for finding in json.loads(done.stdout)["findings"]]
        assert "warning" not in levels
