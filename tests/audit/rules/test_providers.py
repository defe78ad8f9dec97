"""Which package a library comes from: a required one, and its own where a package has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.breaches import CORE, HIP, TO_CORE, USES_CORE, Breach, brief, check_breach, one, with_core
from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile

BREACHES = {
    "undeclared-requirement": Breach(
        with_core(library("demo/a.so", "libamdhip64.so.7", runpath=TO_CORE), owner=package()),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "demo/a.so loads libamdhip64.so.7 from rocm-sdk-core, which its package doesn't require",
    ),
    "unintended-library": Breach(
        with_core(
            library("demo/a.so", "libamdhip64.so.7", runpath=f"{TO_CORE}:$ORIGIN"),
            msgspec.structs.replace(library("demo/libamdhip64.so.7"), sha256=HIP.sha256),
        ),
        "demo/a.so",
        "needs libamdhip64.so.7, but finds _rocm_sdk_core/lib/libamdhip64.so.7 before its own demo/libamdhip64.so.7",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_system_library_found_before_the_bundled_copy_is_reported() -> None:
    files = (library("demo/a.so", "libz.so.1"), library("demo/libs/libz.so.1"))
    assert brief(find(one(*files))) == [
        (
            "unintended-library",
            "demo/a.so",
            "needs libz.so.1, but finds the system's copy before its own demo/libs/libz.so.1",
        )
    ]
    assert find(one(library("demo/a.so", "libz.so.1", runpath="$ORIGIN/libs"), files[1])) == []


@pytest.mark.parametrize(
    "own",
    [library("demo/arm/libz.so.1", machine=183), library("demo/glibc-hwcaps/x86-64-v3/libz.so.1")],
    ids=["of another machine", "for better processors"],
)
def test_an_unusable_bundled_copy_is_not_reported_as_unintended(own: InstalledFile) -> None:
    assert find(one(library("demo/a.so", "libz.so.1"), own), ignore=("wrong-machine",)) == []


def test_a_library_that_is_already_loaded_is_not_reported_as_unintended() -> None:
    user = library("demo/a.so", "libb.so", "libx.so", runpath=f"{TO_CORE}:$ORIGIN")
    other = library("_rocm_sdk_core/lib/libb.so", soname="libx.so")
    audited = tree((USES_CORE, [user, library("demo/libx.so", soname="other.so")]), (CORE, [other]))
    assert find(audited, select=("unintended-library",)) == []


def test_only_packages_that_load_a_library_directly_must_require_it() -> None:
    audited = tree(
        (package(requires=("middle",)), [library("demo/a.so", "libm1.so", runpath="$ORIGIN/../middle")]),
        (package("middle"), [library("middle/libm1.so", "libamdhip64.so.7", runpath=TO_CORE)]),
        (CORE, [HIP]),
    )
    found = find(audited, select=("undeclared-requirement",))
    assert [finding.file for finding in found] == ["middle-1.0-py3-none-manylinux_2_17_x86_64.whl"]


def test_the_remedy_for_another_toolkit_is_the_repair_that_requires_the_sdk() -> None:
    audited = one(library("demo/a.so", "libamdhip64.so.7", "libcudart.so.12", runpath=TO_CORE))
    (finding,) = find(audited, select=("undeclared-requirement",))
    assert finding.remedy == (
        "Add the package to the dependencies, or run 'rocwheel repair --toolkit sdk' (the wheel is for CUDA because of "
        "libcudart.so.12; without this option, a repair uses the system's libraries)."
    )
