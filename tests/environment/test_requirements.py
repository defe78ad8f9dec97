"""Tests of `rocwheel.environment.requirements`."""

from __future__ import annotations

import sys

import pytest
from packaging.specifiers import SpecifierSet

from rocwheel.environment.requirements import required_distributions, surely_installed
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from tests.support.trees import find, library, package, tree

CORE, LIBRARIES = "rocm-sdk-core", "rocm-sdk-libraries"


@pytest.mark.parametrize(
    ("requirement", "brought"),
    [
        ("rocm==7.10.0", {"rocm", CORE}),
        ("rocm[libraries]==7.10.0", {"rocm", CORE, LIBRARIES}),
        ("ROCm[devel]", {"rocm", CORE, "rocm-sdk-devel"}),
        ("rocm[unheard-of]", {"rocm", CORE}),
        ("rocm-sdk-core; extra == 'gpu'", set()),
        ("rocm-sdk-core; python_version < '3'", set()),
    ],
    ids=["selector", "its extra", "another extra", "unknown extra", "extra not asked for", "marker that doesn't hold"],
)
def test_extras_and_markers_decide_what_is_installed(requirement: str, brought: set[str]) -> None:
    made = tree((package("demo", requires=(requirement,)), []))
    assert required_distributions(made, made.distributions[0]) == brought


def test_sdk_versions_are_tried_only_for_requirements_on_sdk_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 400 are tried for each, which took a second and a half for sixty packages."""
    asked: list[str] = []

    def contains(self: SpecifierSet, version: str, prereleases: bool | None = None) -> bool:
        asked.append(f"{self} {version}")
        return False

    monkeypatch.setattr(SpecifierSet, "contains", contains)
    made = tree((package("demo", requires=("numpy>=2", "rocm-sdk-core==7.1.5")), []))
    assert surely_installed(made, made.distributions[0]) == {"demo", "numpy"}
    assert asked[0] == "==7.1.5 7.1.5"
    assert not any(one.startswith(">=2") for one in asked)


def test_packages_required_by_an_extra_of_another_package_are_included() -> None:
    other = package("other", requires=("third; extra == 'fast'", "fourth; extra == 'slow'"))
    made = tree((package("demo", requires=("other[fast]",)), []), (other, []))
    assert required_distributions(made, made.distributions[0]) == {"other", "third"}


@pytest.mark.parametrize(
    ("tag", "marker", "is_brought"),
    [
        ("cp39-cp39-manylinux_2_17_x86_64", "python_version < '3.10'", True),
        ("cp313-cp313-manylinux_2_17_x86_64", "python_version < '3.10'", False),
        ("cp39-abi3-manylinux_2_17_x86_64", "python_version >= '3.13'", True),
        ("cp313-abi3-manylinux_2_17_x86_64", "python_version < '3.13'", False),
        ("py3-none-manylinux_2_17_aarch64", "platform_machine == 'aarch64'", True),
        ("py3-none-manylinux_2_17_aarch64", "platform_machine == 'x86_64'", False),
        ("py3-none-manylinux_2_17_x86_64", "sys_platform == 'win32'", False),
    ],
)
def test_markers_are_evaluated_for_the_tags_not_for_this_python(tag: str, marker: str, is_brought: bool) -> None:
    made = tree((package("demo", tag=tag, requires=(f"other; {marker}",)), []))
    assert required_distributions(made, made.distributions[0]) == ({"other"} if is_brought else set())


def test_markers_in_a_required_wheel_are_evaluated_for_the_requiring_wheel() -> None:
    other = package("other", tag="py3-none-any", requires=("third; sys_platform == 'win32'",))
    made = tree((package("demo", requires=("other",)), []), (other, []))
    assert required_distributions(made, made.distributions[0]) == {"other"}


def test_markers_of_installed_packages_are_evaluated_for_the_current_python() -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    requires = (f"same; python_version == '{here}'", f"other; python_version != '{here}'")
    made = tree((package("demo", is_wheel=False, requires=requires), []))
    assert required_distributions(made, made.distributions[0]) == {"same"}


def test_packages_that_require_each_other_do_not_cause_an_endless_loop() -> None:
    made = tree((package("one", requires=("two",)), []), (package("two", requires=("one",)), []))
    assert required_distributions(made, made.distributions[0]) == {"one", "two"}


def test_the_selector_requires_the_libraries_of_the_given_family() -> None:
    family = package("rocm-sdk-libraries-gfx94x-dcgpu", is_context=True)
    made = tree((package("demo", requires=("rocm[libraries]",)), []), (family, []))
    assert "rocm-sdk-libraries-gfx94x-dcgpu" in required_distributions(made, made.distributions[0])


@pytest.mark.parametrize(
    ("requirement", "missing"),
    [("rocm[libraries]==7.10.0", ()), ("rocm-sdk-core; extra == 'gpu'", (f"{CORE}>=7,<11",))],
    ids=["by the selector", "in an extra"],
)
def test_audit_and_repair_agree_on_the_required_packages(requirement: str, missing: tuple[str, ...]) -> None:
    loading = library("demo/a.so", "libamdhip64.so.7", runpath="$ORIGIN/../_rocm_sdk_core/lib")
    made = tree((package("demo", requires=(requirement,)), [loading]))
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).requires == missing
    assert bool([f for f in find(made) if f.rule == "undeclared-requirement"]) is bool(missing)
