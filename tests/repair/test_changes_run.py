"""Tests of `rocwheel.repair.changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import Pin, RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from tests.support.libraries import needs_compiler
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = needs_compiler


@pytest.mark.parametrize(
    ("version", "pin", "requirement"),
    [
        ("7.10.0a20251006", "minor", "rocm-sdk-core==7.10.*,>=7.10.0a20251006"),
        ("7.10rc1", "minor", "rocm-sdk-core==7.10.*,>=7.10rc1"),
        ("7.10rc1+abc", "minor", "rocm-sdk-core==7.10.*,>=7.10rc1"),
        ("7.10+abc", "minor", "rocm-sdk-core==7.10.*"),
        ("7", "minor", "rocm-sdk-core==7.0.*"),
        ("1!7.2.0", "minor", "rocm-sdk-core==1!7.2.*"),
        ("7.10+abc", "exact", "rocm-sdk-core==7.10+abc"),
        ("7.10rc1", "exact", "rocm-sdk-core==7.10rc1"),
    ],
)
def test_pins_are_satisfied_by_the_given_version(version: str, pin: Pin, requirement: str) -> None:
    assert added_requirements(version, pin) == (requirement,)
    # As installers do, without --pre, where an older release is there as well.
    assert version in list(Requirement(requirement).specifier.filter(["6.0", version]))


def test_a_requirement_without_a_pin_has_no_version() -> None:
    assert added_requirements("7.10rc1", "none") == ("rocm-sdk-core",)


@pytest.mark.parametrize(
    ("needed", "requirement"),
    [
        (("libamdhip64.so.7",), "rocm-sdk-core>=7,<11"),
        (("libamdhip64.so.7", "libamd_smi.so.26"), "rocm-sdk-core==7.*"),
        (("libamdhip64.so.7", "libamd_smi.so.27"), "rocm-sdk-core==10.*"),
        (("libamd_smi.so.26", "libamd_smi.so.27"), "rocm-sdk-core>=7,<11"),
    ],
    ids=["of both releases", "of ROCm 7", "of ROCm 10", "of none"],
)
def test_a_package_that_is_not_given_is_pinned_to_releases_with_the_needed_libraries(
    needed: tuple[str, ...], requirement: str
) -> None:
    made = tree((package(), [library("demo/a.so", *needed)]))
    plan = RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0])
    assert (plan.requires, plan.unmended) == ((requirement,), ())


def test_a_library_newer_than_any_known_release_is_reported() -> None:
    files = [library("demo/a.so", "libamd_smi.so.28", runpath="$ORIGIN/../_rocm_sdk_core/lib")]
    made = tree((package(), files))
    plan = RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0])
    assert plan.unmended_rules == ("unresolved-library",)
    older = tree((package(), [library("demo/a.so", "libamd_smi.so.25", runpath="/opt/rocm/lib")]))
    assert RepairPlanner(split_environments(older), RepairOptions()).plan(older.distributions[0]).unmended == ()


def added_requirements(version: str, pin: Pin) -> tuple[str, ...]:
    core = package("rocm-sdk-core", version=version, is_context=True)
    made = tree(
        (package(), [library("demo/a.so", "libamdhip64.so.7")]),
        (core, [library("_rocm_sdk_core/lib/libamdhip64.so.7")]),
    )
    return RepairPlanner(split_environments(made), RepairOptions(pin=pin)).plan(made.distributions[0]).requires


@pytest.mark.parametrize("init", [(), ("--init",)], ids=["requirements", "requirements and module"])
def test_a_pin_without_packages_that_determine_the_version_is_refused(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path, init: tuple[str, ...]
) -> None:
    command = ("repair", plugin_wheel, "--pin", "exact", "--output", tmp_path / "out", *init)
    refused = run(*command)
    assert (refused.status, refused.stdout, (tmp_path / "out").exists()) == (2, "", False)
    found = "uses rocm-sdk-core, but --pin exact requires the version of that package, which wasn't specified"
    assert f"{found}; expected rocm-sdk-core among the packages in --with" in " ".join(refused.stderr.split())
    assert run(*command, "--with", sdk_wheel).status == 0
