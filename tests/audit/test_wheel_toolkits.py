"""Whose ROCm a wheel takes its libraries from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.audit.wheel_toolkits import Toolkit, ToolkitOption
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import Tree

CORE_6 = (package("rocm-sdk-core", is_context=True), [library("_rocm_sdk_core/lib/libamdhip64.so.6")])
CORE_7 = (package("rocm-sdk-core", is_context=True), [library("_rocm_sdk_core/lib/libamdhip64.so.7")])


def toolkit_of(made: Tree, option: ToolkitOption = "auto") -> Toolkit:
    return Subject(made, AuditSettings()).toolkit_of(made.distributions[0], option)


def toolkit(*needed: str, option: ToolkitOption = "auto", requires: tuple[str, ...] = ()) -> Toolkit:
    made = tree((package(requires=requires), [library("demo/a.so", *needed)]))
    return toolkit_of(made, option)


@pytest.mark.parametrize(
    "needed",
    [
        ("libamdhip64.so.7", "libc.so.6"),
        ("libamdhip64.so.7", "libOpenCL.so.1"),
        ("libamdhip64.so.7", "libvendor.so.1"),
    ],
    ids=["as the SDK has it", "with a shared one", "with one that is of no toolkit"],
)
def test_a_wheel_that_needs_sdk_libraries_uses_the_sdk(needed: tuple[str, ...]) -> None:
    assert toolkit(*needed) == Toolkit(is_sdk=True)


@pytest.mark.parametrize(
    ("needed", "reason"),
    [
        (("libfoo.so.1",), ""),
        (("libOpenCL.so.1",), ""),
        (
            ("libamdhip64.so.6", "librccl.so.1"),
            "another version of ROCm because of libamdhip64.so.6 (the SDK has libamdhip64.so.7)",
        ),
        (
            ("libMIOpen.so.1", "librccl.so.1", "libmigraphx_c.so.3"),
            "a system's ROCm because of libmigraphx_c.so.3, which no SDK contains",
        ),
        (("libcudart.so.12", "libamdhip64.so.7"), "CUDA because of libcudart.so.12"),
        (("libcudnn_ops.so.9", "libnvrtc.so.13"), "CUDA because of libcudnn_ops.so.9, libnvrtc.so.13"),
    ],
    ids=["no toolkit", "shared by toolkits", "another ROCm", "parts that no SDK has", "CUDA and ROCm", "CUDA"],
)
def test_a_wheel_for_another_toolkit_uses_the_system_libraries(needed: tuple[str, ...], reason: str) -> None:
    assert toolkit(*needed) == Toolkit(is_sdk=False, reason=reason)


def test_a_wheel_for_a_newer_rocm_than_in_the_table_is_recognized() -> None:
    found = "libamdhip64.so.8 (the SDK has libamdhip64.so.7)"
    reason = f"a newer ROCm version than rocwheel's list of SDK libraries because of {found}"
    assert toolkit("libamdhip64.so.8", "librccl.so.1") == Toolkit(is_sdk=False, reason=reason, is_newer=True)


def test_with_a_given_sdk_a_newer_library_belongs_to_another_rocm() -> None:
    found = toolkit_of(tree((package(), [library("demo/a.so", "libamdhip64.so.8")]), CORE_7))
    reason = "another version of ROCm because of libamdhip64.so.8 (the SDK has libamdhip64.so.7)"
    assert found == Toolkit(is_sdk=False, reason=reason)


def test_a_wheel_that_requires_the_sdk_uses_it_despite_cuda() -> None:
    assert toolkit("libcudart.so.12", requires=("rocm-sdk-core==7.1",)) == Toolkit(is_sdk=True)
    assert toolkit("libcudart.so.12", requires=("rocm[libraries]",)) == Toolkit(is_sdk=True)


@pytest.mark.parametrize("needed", ["libcudart.so.12", "libmigraphx_c.so.3"])
def test_a_wheel_that_loads_libraries_from_a_given_sdk_uses_the_sdk(needed: str) -> None:
    files = [library("demo/a.so", "libamdhip64.so.7", needed, runpath="$ORIGIN/../_rocm_sdk_core/lib")]
    assert toolkit_of(tree((package(), files), CORE_7)) == Toolkit(is_sdk=True)
    assert not toolkit_of(tree((package(), files))).is_sdk


def test_a_wheel_that_requires_the_sdk_uses_it_despite_missing_libraries() -> None:
    assert toolkit("libmigraphx_c.so.3", requires=("rocm-sdk-core==7.1",)) == Toolkit(is_sdk=True)


def test_a_given_package_may_have_a_library_that_the_sdk_lacks() -> None:
    migraphx = (package("migraphx", is_context=True), [library("migraphx/libmigraphx_c.so.3")])
    made = tree((package(), [library("demo/a.so", "libmigraphx_c.so.3", "libamdhip64.so.7")]), migraphx)
    assert toolkit_of(made) == Toolkit(is_sdk=True)


def test_bundled_libraries_do_not_determine_the_toolkit() -> None:
    files = [library("demo/a.so", "libamdhip64.so.6"), library("demo/lib/libamdhip64.so.6")]
    made = tree((package(), files))
    assert toolkit_of(made) == Toolkit(is_sdk=False)


@pytest.mark.parametrize(
    ("sdk", "needed", "expected"),
    [
        (CORE_6, "libamdhip64.so.6", True),
        (CORE_6, "libamdhip64.so.7", False),
        (CORE_7, "libamdhip64.so.6", False),
        (CORE_7, "libamdhip64.so.7", True),
    ],
    ids=["6 for 6", "6 for 7", "7 for 6", "7 for 7"],
)
def test_the_given_packages_determine_the_library_versions_of_the_sdk(
    sdk: tuple[object, list[object]], needed: str, expected: bool
) -> None:
    made = tree((package(), [library("demo/a.so", needed)]), sdk)  # type: ignore[arg-type]
    assert toolkit_of(made).is_sdk is expected


@pytest.mark.parametrize(
    "name",
    [
        "librocm-openblas.so.0.3",
        "librocm_sysdeps_elf.so.2",
        "librocm_sysdeps_zstd.so.2",
        "libOpenCL.so.2",
        "libomp.so.5",
    ],
)
@pytest.mark.parametrize("needed", [(), ("libamdhip64.so.7",)], ids=["alone", "with a library of the SDK"])
def test_libraries_that_rocm_does_not_version_do_not_determine_the_toolkit(name: str, needed: tuple[str, ...]) -> None:
    assert toolkit(name, *needed) == Toolkit(is_sdk=bool(needed))


def test_the_toolkit_option_overrides_detection() -> None:
    assert toolkit("libcudart.so.12", option="sdk") == Toolkit(is_sdk=True, is_told=True)
    assert toolkit("libamdhip64.so.7", option="system") == Toolkit(is_sdk=False, is_told=True)
