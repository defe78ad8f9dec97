"""After a repair every file finds at least what it found before, on a machine that has what its old run path led to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import Pin, RepairOptions
from rocwheel.repair.regressions import Found
from rocwheel.repair.repair_plan import RepairPlanner
from tests.repair.plans import SDK, Part, plan, run_paths
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.audit.wheel_toolkits import ToolkitOption
    from rocwheel.environment.tree import InstalledFile


ROCM_6 = "/opt/rocm-6.0.0/lib"


def tensorflow() -> list[InstalledFile]:
    """Return what tensorflow_rocm 2.14.0.600 has: RUNPATHs to Bazel's folders and to the ROCm 6 of a system."""
    needed = ("libamdhip64.so.6", "libhsa-runtime64.so.1", "librccl.so.1")
    return [
        library(
            "demo/libtensorflow_cc.so.2",
            "libtensorflow_framework.so.2",
            *needed,
            runpath=f"$ORIGIN/../_solib_local/:$ORIGIN/x.runfiles/org/_solib_local/:$ORIGIN/:{ROCM_6}",
            imports_dlopen=True,
        ),
        library("demo/libtensorflow_framework.so.2", *needed[:2], runpath=f"$ORIGIN/:../rocm/rocm/lib:{ROCM_6}"),
        library("demo/python/_pywrap.so", *needed[1:], runpath=ROCM_6),
    ]


@pytest.mark.parametrize("toolkit", ["auto", "system", "sdk"])
@pytest.mark.parametrize("beside", [[], SDK], ids=["nothing at hand", "the SDK at hand"])
def test_run_paths_in_a_wheel_for_another_rocm_version_are_kept(beside: list[Part], toolkit: ToolkitOption) -> None:
    made = plan(*tensorflow(), beside=beside, toolkit=toolkit)
    found = run_paths(made)
    assert all(ROCM_6 in found[name].split(":") for name in ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2"))
    if toolkit == "sdk":
        core, libraries = "$ORIGIN/../../_rocm_sdk_core/lib", "$ORIGIN/../../_rocm_sdk_libraries/lib"
        assert sorted(found["python/_pywrap.so"].split(":")) == [core, libraries]
        pin = "==7.1.*" if beside else ">=7,<11"
        assert set(made.requires) == {f"rocm-sdk-core{pin}", f"rocm-sdk-libraries{pin}"}
    else:
        assert found == {
            "libtensorflow_cc.so.2": f"$ORIGIN:{ROCM_6}",
            "libtensorflow_framework.so.2": f"$ORIGIN:{ROCM_6}",
        }
        assert (made.requires, made.left) == ((), {})


def bitsandbytes() -> list[InstalledFile]:
    """Return what bitsandbytes 0.50.2 has: a library for each of several versions of CUDA and ROCm."""
    cuda = ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12")
    return [
        library("demo/libbitsandbytes_cuda124.so", *cuda, runpath="/usr/local/cuda-12.4/targets/x86_64-linux/lib"),
        library("demo/libbitsandbytes_rocm64.so", "libhipblas.so.2", runpath="/opt/rocm/lib:/opt/rocm-6.4.4/lib"),
        library("demo/libbitsandbytes_rocm71.so", "libhipblas.so.3", runpath="/opt/rocm/lib:/opt/rocm-7.1.1/lib"),
        library("demo/libbitsandbytes_cpu.so", "libgomp.so.1"),
    ]


@pytest.mark.parametrize("toolkit", ["auto", "system"])
@pytest.mark.parametrize("beside", [[], SDK], ids=["nothing at hand", "the SDK at hand"])
def test_a_wheel_for_several_toolkits_is_unchanged(beside: list[Part], toolkit: ToolkitOption) -> None:
    made = plan(*bitsandbytes(), beside=beside, toolkit=toolkit)
    assert (made.edits, made.requires, made.left) == ({}, (), {})
    assert made.finds["demo/libbitsandbytes_cuda124.so"][0] == Found(
        "libcudart.so.12", "kept", "/usr/local/cuda-12.4/targets/x86_64-linux/lib"
    )
    assert made.finds["demo/libbitsandbytes_cpu.so"] == (Found("libgomp.so.1", "nothing"),)


@pytest.mark.parametrize("beside", [[], SDK], ids=["nothing at hand", "the SDK at hand"])
def test_the_sdk_replaces_only_paths_for_its_own_libraries_when_requested(beside: list[Part]) -> None:
    made = plan(*bitsandbytes(), beside=beside, toolkit="sdk")
    assert run_paths(made) == {"libbitsandbytes_rocm71.so": "$ORIGIN/../_rocm_sdk_libraries/lib"}
    assert made.requires == ("rocm-sdk-libraries==7.1.*" if beside else "rocm-sdk-libraries>=7,<11",)
    assert any("libbitsandbytes_rocm64.so needs libhipblas.so.2" in text for text in made.unmended)


@pytest.mark.parametrize(
    ("beside", "toolkit", "expected"),
    [
        ([], "auto", "$ORIGIN/../_rocm_sdk_core/lib"),
        ([], "sdk", "$ORIGIN/../_rocm_sdk_core/lib"),
        (SDK, "auto", "$ORIGIN/../_rocm_sdk_core/lib"),
        (SDK, "sdk", "$ORIGIN/../_rocm_sdk_core/lib"),
    ],
    ids=["assumed", "assumed on demand", "at hand", "at hand and on demand"],
)
def test_a_path_is_replaced_if_a_required_package_is_known_to_have_the_library(
    beside: list[Part], toolkit: ToolkitOption, expected: str
) -> None:
    made = plan(library("demo/a.so", "libamdhip64.so.7", runpath="/opt/rocm/lib"), beside=beside, toolkit=toolkit)
    requirement = "rocm-sdk-core==7.1.*" if beside else "rocm-sdk-core>=7,<11"
    assert (run_paths(made), made.requires) == ({"a.so": expected}, (requirement,))


def test_a_package_that_replaces_no_path_can_be_required_in_any_version() -> None:
    file = library("demo/a.so", "libamdhip64.so.7", runpath="/builds/x")
    made = tree((package(), [file]), *SDK)
    pins: tuple[Pin, ...] = ("none", "release")
    asked = (RepairPlanner(split_environments(made), RepairOptions(pin=pin)) for pin in pins)
    found = [planner.plan(made.distributions[0]).requires for planner in asked]
    assert found == [("rocm-sdk-core",), ("rocm-sdk-core==7.1.*",)]


def test_no_run_path_points_to_the_sdk_when_the_toolkit_is_the_system() -> None:
    file = library("demo/a.so", "libamdhip64.so.7", runpath="/opt/rocm/lib")
    made = plan(file, beside=SDK, toolkit="system")
    assert (made.edits, made.requires) == ({}, ())


def test_a_package_outside_the_required_version_replaces_no_path() -> None:
    file = library("demo/a.so", "libamdhip64.so.7", runpath="/opt/rocm/lib")
    made = plan(file, beside=SDK, requires="rocm-sdk-core==6.4.*")
    assert run_paths(made) == {"a.so": "$ORIGIN/../_rocm_sdk_core/lib:/opt/rocm/lib"}
    assert made.left == {}


@pytest.mark.parametrize("toolkit", ["auto", "sdk"])
def test_a_file_that_opens_libraries_keeps_host_paths_unless_the_sdk_is_requested(toolkit: ToolkitOption) -> None:
    run_path = "/opt/rocm/lib:$ORIGIN/../elsewhere/lib"
    file = library("demo/a.so", "libamdhip64.so.7", runpath=run_path, imports_dlopen=True)
    core = "$ORIGIN/../_rocm_sdk_core/lib"
    sdk, after = (f"{core}:/opt/rocm/lib:", "") if toolkit == "auto" else ("", f":{core}")
    found = run_paths(plan(file, beside=SDK, toolkit=toolkit))
    assert found == {"a.so": f"{sdk}$ORIGIN/../elsewhere/lib{after}"}


@pytest.mark.parametrize("folder", ["/opt/vendor/lib", "/usr/local/nvidia/lib64", "$ORIGIN/../../../../lib"])
def test_a_non_toolkit_folder_is_kept_for_opened_libraries_even_if_the_sdk_is_requested(folder: str) -> None:
    run_path = f"/opt/rocm/lib:{folder}:/usr/local/cuda-12.4/lib64"
    file = library("demo/a.so", "libamdhip64.so.7", runpath=run_path, imports_dlopen=True)
    made = plan(file, beside=SDK, toolkit="sdk")
    assert (run_paths(made), made.left) == ({"a.so": f"$ORIGIN/../_rocm_sdk_core/lib:{folder}"}, {})


def test_a_shared_folder_is_kept_for_packages_that_are_not_given() -> None:
    file = library("nvidia/cu13/lib/libcusolver.so.12", "libcublas.so.13", runpath="/tmp/me:$ORIGIN")
    made = plan(file)
    assert {name: edit.value for name, edit in made.edits.items()} == {file.path: "$ORIGIN"}


def test_entries_that_are_no_longer_needed_are_removed() -> None:
    files = [library("demo/a.so", "libq.so", runpath="/opt/lib:$ORIGIN/../nvidia/lib"), library("demo/lib/libq.so")]
    assert run_paths(plan(*files)) == {"a.so": "$ORIGIN/lib"}


@pytest.mark.parametrize(
    "entry",
    [
        "$ORIGIN/../sandbox/lib",
        "$ORIGIN/../external/lib",
        "/workspace/rocm/lib",
        "/home/me/rocm/lib",
        "/root/rocm/lib",
    ],
)
def test_entries_that_may_exist_on_a_machine_are_kept_for_otherwise_missing_libraries(entry: str) -> None:
    lacks = library("demo/a.so", "libx.so", runpath=f"/builds/x:{entry}")
    assert run_paths(plan(lacks, requires="sandbox")) == {"a.so": entry}
    finds = library("demo/a.so", "libq.so", runpath=f"{entry}:$ORIGIN")
    assert run_paths(plan(finds, library("demo/libq.so"), requires="sandbox")) == {"a.so": "$ORIGIN"}


def test_a_package_counts_only_if_its_version_satisfies_every_requirement_on_the_way() -> None:
    selector: Part = (package("rocm", version="7.1.2", requires=("rocm-sdk-core==7.1.2",), is_context=True), [])
    file = library("demo/a.so", "libamdhip64.so.7", runpath="/opt/rocm/lib")
    core = "$ORIGIN/../_rocm_sdk_core/lib"
    for beside in ([selector, *SDK], SDK):
        assert run_paths(plan(file, beside=beside, requires="rocm==6.4.*")) == {"a.so": f"{core}:/opt/rocm/lib"}
        assert run_paths(plan(file, beside=beside, requires="rocm==7.1.*")) == {"a.so": core}


def test_kept_entries_keep_their_order() -> None:
    run_path = "/builds/x:/opt/x/lib:$ORIGIN/../xpkg/lib"
    made = plan(library("demo/a.so", "libx.so", runpath=run_path), requires="xpkg")
    assert run_paths(made) == {"a.so": "/opt/x/lib:$ORIGIN/../xpkg/lib"}
