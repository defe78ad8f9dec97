"""Entries of RPATH and RUNPATH that lead nowhere, elsewhere, or only on the machine that built the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.breaches import CORE, HIP, TO_CORE, USES_CORE, Breach, brief, check_breach, one, with_core
from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile

BREACHES = {
    "run-path-relative": Breach(
        one(library("demo/a.so", runpath="rocm_dis/lib")),
        "demo/a.so",
        "searches 'rocm_dis/lib' relative to the working directory",
    ),
    "run-path-eaten-origin": Breach(
        one(library("demo/a.so", runpath="/../rocm/lib")),
        "demo/a.so",
        "has '/../rocm/lib': a shell or make removed $ORIGIN",
    ),
    "run-path-build-folder": Breach(
        one(library("demo/a.so", runpath="$ORIGIN/../_solib_k8/_U_S_Sfoo")),
        "demo/a.so",
        "searches '$ORIGIN/../_solib_k8/_U_S_Sfoo' from the build machine",
    ),
    "run-path-absolute": Breach(
        one(library("demo/a.so", runpath="/opt/rocm/lib")),
        "demo/a.so",
        "searches '/opt/rocm/lib' on the host",
    ),
    "run-path-repeated": Breach(
        one(library("demo/a.so", runpath="$ORIGIN:$ORIGIN/../demo")),
        "demo/a.so",
        "lists '$ORIGIN/../demo' more than once",
    ),
    "run-path-dead": Breach(
        one(library("demo/a.so", runpath="$ORIGIN/lib")),
        "demo/a.so",
        "searches '$ORIGIN/lib', which can't exist after installation",
    ),
    "run-path-wrong-depth": Breach(
        one(library("demo/gpu/a.so", runpath=TO_CORE)),
        "demo/gpu/a.so",
        "is 2 folders deep, but these entries are for a different depth: '$ORIGIN/../_rocm_sdk_core/lib'",
    ),
    "run-path-mixed": Breach(
        one(library("demo/a.so", runpath="$ORIGIN"), library("demo/b.so", rpath="$ORIGIN")),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "has 1 file with RPATH (such as demo/b.so) and 1 with RUNPATH",
    ),
    "rpath-into-others": Breach(
        with_core(library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE), owner=package(requires=("rocm-sdk-core",))),
        "demo/a.so",
        (
            "has an RPATH entry into _rocm_sdk_core/lib, which LD_LIBRARY_PATH can't override and which the "
            "libraries in that folder inherit"
        ),
    ),
    "run-path-unexpected": Breach(
        one(library("demo/a.so", runpath="$ORIGIN")),
        "demo/a.so",
        "has the run path '$ORIGIN', but the settings expect '$ORIGIN/../_rocm_sdk_core/lib'",
        {"expect_runpath": TO_CORE},
    ),
    "run-path-tag": Breach(
        one(library("demo/a.so", rpath="$ORIGIN")),
        "demo/a.so",
        "has RPATH, but the settings expect RUNPATH",
        {"expect_tag": "runpath"},
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_folder_inside_the_package_is_not_a_build_folder() -> None:
    files = (library("demo/a.so", "libb.so", runpath="$ORIGIN/external/lib"), library("demo/external/lib/libb.so"))
    assert find(one(*files)) == []


@pytest.mark.parametrize(
    ("requirement", "is_release"),
    [("==7.0", True), ("===7.0", True), ("==7.*", False), (">=7", False), ("~=7.0", False), ("", False)],
)
def test_only_an_exact_version_requirement_means_the_same_release(requirement: str, is_release: bool) -> None:
    core = package("rocm-sdk-core", version="7.0")
    owner = package(requires=(f"rocm-sdk-core{requirement}",))
    audited = tree((owner, [library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE)]), (core, [HIP]))
    assert ([finding.rule for finding in find(audited)] == []) is is_release


def test_an_entry_for_the_top_of_site_packages_is_not_dead() -> None:
    files = [library("demo/_ext.so", "libfoo.so.1", runpath="$ORIGIN/.."), library("libfoo.so.1")]
    assert find(tree((package(), files)), ignore=("tag-*",)) == []


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("$ORIGIN/nope/../libs", "run-path-dead"),
        ("RIGIN/libs", "run-path-eaten-origin"),
        ("/../libs", "run-path-eaten-origin"),
        ("../libs", "run-path-relative"),
        ("$ORIGIN/libs/../libs", None),
    ],
)
def test_entries_that_only_seem_to_lead_to_a_folder_are_reported(entry: str, rule: str | None) -> None:
    files = (library("demo/a.so", runpath=entry), library("demo/libs/b.so"))
    assert [f.rule for f in find(one(*files), select=("run-path-*",))] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("needed", "requires", "is_dead"),
    [
        ("libqt.so.5", ("qt-libraries",), False),
        ("libqt.so.5", (), True),
        ("libqt.so.5", ("rocm-sdk-core",), True),
        ("libc.so.6", ("qt-libraries",), True),
    ],
    ids=["maybe of a package", "of no package", "not of the SDK", "nothing is missing"],
)
def test_a_package_that_was_not_given_may_provide_the_folder(
    needed: str, requires: tuple[str, ...], is_dead: bool
) -> None:
    audited = one(library("demo/a.so", needed, runpath="$ORIGIN/qt/lib"), owner=package(requires=requires))
    assert bool(find(audited, select=("run-path-dead",))) is is_dead


def test_both_spellings_of_origin_match_the_expected_run_path() -> None:
    files = (library("demo/a.so", runpath="${ORIGIN}/libs"), library("demo/libs/b.so", runpath="$ORIGIN"))
    found = find(one(*files), expect_runpath="$ORIGIN/libs", select=("run-path-unexpected",))
    assert [f.path for f in found] == ["demo/libs/b.so"]


@pytest.mark.parametrize(
    ("file", "settings", "is_told"),
    [
        (library("demo/a.so", "libc.so.6"), {}, False),
        (library("demo/a.so"), {}, False),
        (library("demo/a.so", "libamdhip64.so.7"), {}, True),
        (library("demo/a.so", "libc.so.6", imports_dlopen=True), {}, True),
        (library("demo/a.so"), {"dlopen": {"demo/*": ("libb.so",)}}, True),
        (library("demo/a.so", "libc.so.6", runpath="$ORIGIN"), {}, True),
    ],
    ids=["the system's alone", "nothing", "the SDK's", "calls dlopen", "opens by name", "another run path"],
)
def test_a_library_without_dependencies_does_not_need_the_expected_run_path(
    file: InstalledFile, settings: dict[str, Any], is_told: bool
) -> None:
    found = find(one(file), expect_runpath=TO_CORE, select=("run-path-unexpected",), **settings)
    assert bool(found) is is_told


def test_a_folder_in_an_sdk_package_that_was_not_given_may_exist() -> None:
    user = library("demo/a.so", "libamdhip64.so.7", runpath=f"{TO_CORE}:{TO_CORE}/inner")
    assert find(one(user, owner=USES_CORE)) == []
    there = library("_rocm_sdk_core/lib/libamdhip64.so.7")
    assert [finding.rule for finding in find(tree((USES_CORE, [user]), (CORE, [there])))] == ["run-path-dead"]


@pytest.mark.parametrize(
    "entry",
    [
        "/home/me/build/lib", "/tmp/x/lib", "$ORIGIN/_a.so.runfiles/__main__/x", "$ORIGIN/../../external/r/lib",
        "/usr/lib/python3/site-packages/torch/lib", "bazel-out/k8-opt/bin",
    ],
)  # fmt: skip
def test_build_folders_are_recognized_by_name(entry: str) -> None:
    found = find(one(library("demo/a.so", runpath=entry)), select=("run-path-build-folder",))
    assert [finding.rule for finding in found] == ["run-path-build-folder"]


def test_packages_of_one_release_may_use_rpath_to_each_other() -> None:
    assert find(with_core(library("demo/a.so", "libamdhip64.so.7", rpath=TO_CORE))) == []


def test_a_repeated_entry_is_shown_once() -> None:
    findings = find(one(library("demo/a.so", runpath="$ORIGIN:::::")), select=("run-path-repeated",))
    assert [finding.found for finding in findings] == ["lists '' more than once"]


def test_an_rpath_into_a_missing_package_of_the_same_release_is_accepted() -> None:
    owner = package(requires=("shiboken6==1.0", "other-package==1.0"))
    files = [
        library("demo/a.so", rpath="$ORIGIN/../shiboken6"),
        library("demo/b.so", rpath="$ORIGIN/../other_package/lib"),
    ]
    assert find(one(*files, owner=owner)) == []


def test_an_rpath_into_a_setuptools_build_folder_is_dead() -> None:
    findings = find(one(library("demo/a.so", rpath="$ORIGIN:$ORIGIN/../build/lib.linux-x86_64-cpython-311/demo")))
    assert brief(findings) == [
        (
            "run-path-dead",
            "demo/a.so",
            "searches '$ORIGIN/../build/lib.linux-x86_64-cpython-311/demo', which can't exist after installation",
        )
    ]


@pytest.mark.parametrize(
    ("entry", "severity"),
    [
        ("$ORIGIN/../../_solib_k8/x", "note"),
        ("/opt/_internal/cpython-3.11.13/lib/python3.11/site-packages/scipy_openblas32/lib", "note"),
        ("/builds/me/x", "note"),
        ("/home/me/rocm/lib", "warning"),
        ("/tmp/build/lib", "error"),
        ("//tmp/lib", "error"),
        ("/var/tmp/lib", "error"),
        ("/opt/../tmp/lib", "error"),
        ("/dev/shm", "error"),
        ("/opt/rocm/lib", "warning"),
        ("/tmpfs/lib", "warning"),
    ],
)
def test_the_severity_depends_on_who_can_put_a_library_into_the_folder(entry: str, severity: str) -> None:
    (finding,) = find(one(library("demo/a.so", runpath=entry)), select=("run-path-build-folder", "run-path-absolute"))
    assert finding.severity.value == severity


def test_a_world_writable_folder_is_named() -> None:
    (finding,) = find(one(library("demo/a.so", runpath="/home/me/lib:/tmp/lib")), select=("run-path-build-folder",))
    assert finding.found == (
        "searches '/home/me/lib', '/tmp/lib' from the build machine; any user on the machine can put a "
        "library into '/tmp/lib'"
    )
