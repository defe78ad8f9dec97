"""Paths in packages for Windows: names that are refused or confused, and long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.finding import Severity
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import data, dll, find, library, package, tree, windows_package

if TYPE_CHECKING:
    from rocwheel.environment.tree import Distribution, InstalledFile, Tree

LONG = f"_rocm_sdk_libraries/bin/{'x' * 160}.dat"
"""188 characters."""

BREACHES = {
    "windows-name": Breach(
        one(data("demo/.kpack/blas_lib_gfx90a:xnack+.kpack"), owner=windows_package()),
        "demo/.kpack/blas_lib_gfx90a:xnack+.kpack",
        "can't be installed: 'blas_lib_gfx90a:xnack+.kpack' has a colon, which Windows doesn't allow in names",
    ),
    "windows-case": Breach(
        one(data("demo/Kernels.dat"), data("demo/kernels.dat"), owner=windows_package()),
        "demo/Kernels.dat",
        "differs from demo/kernels.dat only in case: Windows treats these paths as one file",
    ),
    "windows-path": Breach(
        one(data(LONG), owner=windows_package()),
        LONG,
        "has a path of 188 characters, which leaves 70 for the path of site-packages",
    ),
    "windows-kernels": Breach(
        one(data(f"{'y' * 90}/rocblas/library/a.dat"), owner=windows_package()),
        f"{'y' * 90}/rocblas/library/a.dat",
        f"is in {'y' * 90}/rocblas/library, where rocBLAS finds kernels only if their paths have at most 174 "
        "characters: this limit leaves 67 for the "
        "path of site-packages",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_path_of_300_characters_is_an_error() -> None:
    (finding,) = find(one(data(f"demo/{'a' * 145}/{'b' * 149}"), owner=windows_package()))
    assert (finding.rule, finding.severity) == ("windows-path", Severity.ERROR)
    assert finding.found == "has a path of 300 characters, which leaves 0 for the path of site-packages"


def test_only_the_longest_path_of_a_package_is_reported() -> None:
    (finding,) = find(one(data(LONG), data(LONG[:-1]), data("demo/a"), owner=windows_package()))
    assert finding.found.endswith(
        "leaves 70 for the path of site-packages; paths of 1 more file also leave fewer than 80"
    )


def test_the_settings_limit_the_length_of_the_site_packages_path() -> None:
    audited = one(data(LONG), owner=windows_package())
    assert find(audited, site_packages_length=70) == []
    assert len(find(audited, site_packages_length=71)) == 1


def test_a_case_conflict_between_two_packages_is_reported_once() -> None:
    audited = tree((windows_package("one"), [data("shared/A")]), (windows_package("two"), [data("shared/a")]))
    assert brief(find(audited)) == [
        ("windows-case", "shared/A", "differs from shared/a only in case: Windows treats these paths as one file")
    ]


def test_linux_packages_may_have_names_that_windows_refuses() -> None:
    assert find(one(data("demo/a:b"), data("demo/A:B"), data(f"demo/{'x' * 250}"), library("demo/a.so"))) == []


PURE = package("pure", tag="py3-none-any")
IN_CASE = [data("pure/aux.py"), data("pure/Name.py"), data("pure/name.py")]


@pytest.mark.parametrize(
    "beside",
    [[], [(windows_package(), [dll("demo/a.dll")])], [(package(), [library("demo/a.so")])]],
    ids=["alone", "beside one for Windows", "beside one for Linux"],
)
def test_wheels_for_any_platform_must_suit_windows(beside: list[tuple[Distribution, list[InstalledFile]]]) -> None:
    found = find(tree((PURE, IN_CASE), *beside))
    assert [(finding.rule, finding.path) for finding in found] == [
        ("windows-case", "pure/Name.py"),
        ("windows-name", "pure/aux.py"),
    ]


def test_wheels_with_linux_code_need_not_suit_windows() -> None:
    found = find(tree((PURE, [*IN_CASE, library("pure/a.so")])))
    assert [finding.rule for finding in found if finding.rule.startswith("windows")] == []


ARCHIVE = "rocm_sdk_devel/_devel.tar.xz"
MANIFEST = "rocm_sdk_devel/_links.json"


def packed(archive: tuple[str, ...] = (), manifest: tuple[str, ...] = ()) -> Tree:
    """Return a package of development files that are packed."""
    files = [data(ARCHIVE, devel_paths=archive), data(MANIFEST, devel_paths=manifest)]
    return one(*files, owner=windows_package("rocm-sdk-devel"))


DEEP = f"_rocm_sdk_devel/{'x' * 150}/{'y' * 93}"
"""260 characters."""


@pytest.mark.parametrize(
    ("audited", "rule", "file", "found"),
    [
        pytest.param(
            packed(("_rocm_sdk_devel/aux.h",)),
            "windows-name",
            ARCHIVE,
            (
                "contains _rocm_sdk_devel/aux.h, which can't be extracted: 'aux.h' is the "
                "name of the device AUX on Windows"
            ),
            id="name",
        ),
        pytest.param(
            packed(manifest=("bin/nul.dll",)),
            "windows-name",
            MANIFEST,
            "contains _rocm_sdk_devel/bin/nul.dll, which can't be extracted: "
            "'nul.dll' is the name of the device NUL on Windows",
            id="name in the manifest",
        ),
        pytest.param(
            packed(("_dev/Half.h",), ("half.h",)),
            "windows-case",
            ARCHIVE,
            "contains _dev/Half.h, which differs from _dev/half.h only in case: Windows treats these paths as one file",
            id="case",
        ),
        pytest.param(
            packed((DEEP, DEEP[:-1])),
            "windows-path",
            ARCHIVE,
            f"has a path of 260 characters when packed ({DEEP}), which leaves 0 for the path of site-packages; "
            "paths of 1 more file also leave fewer than 80",
            id="path",
        ),
    ],
)
def test_packed_development_files_are_checked_under_their_expanded_paths(
    audited: Tree, rule: str, file: str, found: str
) -> None:
    assert brief(find(audited)) == [(rule, file, found)]


def test_each_packed_name_that_windows_refuses_is_a_separate_finding() -> None:
    findings = find(packed(("_rocm_sdk_devel/aux.h", "_rocm_sdk_devel/nul")))
    assert len({finding.fingerprint for finding in findings}) == 2


def test_expanded_files_do_not_clash_with_their_manifest() -> None:
    files = [data(MANIFEST, devel_paths=("bin/a.h",)), data("_rocm_sdk_devel/bin/a.h")]
    assert find(one(*files, owner=windows_package("rocm-sdk-devel"))) == []
