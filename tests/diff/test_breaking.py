"""Tests of the rules by which a change breaks users."""

from __future__ import annotations

import re

import pytest

from rocwheel.diff.breaking import RULES, find_breaks, idle_patterns, is_private
from rocwheel.diff.changes import Comparison, FieldChange, FileChange, PackageChange, SideFacts, Status
from rocwheel.diff.compare import compare_field
from scripts.site_hooks import with_rules
from tests.support.places import ROOT

SIDE = SideFacts("x", 1, 1, 1, None)


def found(*packages: PackageChange) -> list[tuple[str, str, str]]:
    """Return rule, file and words of each finding."""
    return [(finding.rule, finding.file, finding.found) for finding in find_breaks(Comparison(SIDE, SIDE, packages))]


def changed(*fields: FieldChange, **others: object) -> PackageChange:
    return PackageChange(status=Status.CHANGED, name="demo", fields=fields, **others)  # type: ignore[arg-type]


def went(path: str, **others: str) -> PackageChange:
    return changed(files=(FileChange(status=Status.WENT, old_path=path, **others),))  # type: ignore[arg-type]


def test_the_page_lists_the_current_rules() -> None:
    table = with_rules((ROOT / "docs/diff.md").read_text()).partition("## Rules")[2]
    rows = re.findall(r"^\| .*`([\w-]+)` \| (\w+) \| (.*) \|$", table, re.MULTILINE)
    assert rows == [(rule.name, rule.severity.value, rule.demand) for rule in RULES]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("demo/a.py", "module-gone"),
        ("demo/a.pyi", "module-gone"),
        ("demo/a.cpython-312-x86_64-linux-gnu.so", "module-gone"),
        ("demo/include/a.hpp", "header-gone"),
        ("demo/lib/cmake/demo-config.cmake", "header-gone"),
        ("demo/lib/pkgconfig/demo.pc", "header-gone"),
        ("demo/lib/libdemo.a", "header-gone"),
        ("demo/lib/demo.lib", "header-gone"),
        ("demo/_c.cp312-win_amd64.pyd", "module-gone"),
        ("demo/bin/tool", "program-gone"),
        ("demo/bin/tool.exe", "program-gone"),
        ("demo/share/a.txt", "file-gone"),
        ("demo/lib/library/kernels_gfx90a.co", "kernels-gone"),
        ("demo/share/about_gfx90a.txt", "file-gone"),
    ],
)
def test_the_rule_for_a_removed_file_depends_on_the_kind_of_file(path: str, rule: str) -> None:
    assert [name for name, _, _ in found(went(path))] == [rule]


def test_a_removed_link_to_a_library_is_reported_as_another_name_of_the_library() -> None:
    assert found(went("lib/libdemo.so", old_link="libdemo.so.1")) == [
        ("library-gone", "lib/libdemo.so", "was removed (another name of a library)")
    ]


@pytest.mark.parametrize("path", ["demo.libs/libz-1a2b3c4d.so.1", "demo-1.0.dist-info/licenses/LICENSE"])
def test_removing_vendored_libraries_or_metadata_breaks_nothing(path: str) -> None:
    assert found(went(path)) == []


def test_a_file_that_moved_to_another_package_is_a_warning() -> None:
    assert found(went("lib/libdemo.so.1", moved_to="other")) == [("file-moved", "lib/libdemo.so.1", "is now in other")]


@pytest.mark.parametrize(
    ("path", "private"),
    [
        ("demo.libs/libz.so.1", True),
        ("lib/libz-1a2b3c4d.so.1", True),
        ("demo/a.abi3.so", True),
        ("demo/_a.so", True),
        ("lib/libdemo.so.1", False),
        ("lib/libdemo-hip.so", False),
    ],
)
def test_is_private_recognizes_libraries_that_users_do_not_link_to(path: str, private: bool) -> None:
    assert is_private(path) is private


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        (">=3.9", ">=3.9,<4", []),
        (">=3.9", ">=3.8", []),
        (">=3.9", ">=3.10", ["python-narrowed"]),
        ("", ">=3.9", ["python-narrowed"]),
        (">=3.9", "", []),
        (">=3.9", "<3.13,>=3.9", ["python-narrowed"]),
        (">=3.9", "no specifier", []),
    ],
)
def test_excluding_a_python_release_is_reported_as_narrowed(old: str, new: str, rules: list[str]) -> None:
    change = FieldChange("Requires-Python", (old,) if old else (), (new,) if new else ())
    assert [name for name, _, _ in found(changed(change))] == rules


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ("manylinux_2_17_x86_64", "manylinux_2_28_x86_64", ["glibc-raised"]),
        ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", []),
        ("manylinux_2_28_x86_64", "manylinux2014_x86_64", []),
        ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", ["platform-gone"]),
        ("linux_x86_64", "any", []),
        ("any", "linux_x86_64", ["platform-gone"]),
    ],
)
def test_dropping_a_platform_tag_is_reported(old: str, new: str, rules: list[str]) -> None:
    change = FieldChange("Platform tag", (old,), (new,))
    package = changed(change, old_platforms=(old,), new_platforms=(new,))
    assert [name for name, _, _ in found(package)] == rules


def test_different_spellings_of_an_extra_are_equal() -> None:
    assert found(changed(FieldChange("Provides-Extra", ("Test_All",), ("test-all",)))) == []


@pytest.mark.parametrize(
    ("went", "came", "rules"),
    [
        ("py2", "", []),
        ("cp311", "", ["python-narrowed"]),
        ("cp311", "cp312", ["python-narrowed"]),
        ("cp311", "py3", []),
        ("cp311", "cp312.py2", ["python-narrowed"]),
    ],
)
def test_only_the_python_2_tag_may_be_dropped(went: str, came: str, rules: list[str]) -> None:
    change = FieldChange("Python tag", (went,), (came,) if came else ())
    assert [name for name, _, _ in found(changed(change))] == rules


@pytest.mark.parametrize(
    ("field", "went", "now", "rules"),
    [
        ("Python tag", "cp312", {"new_pythons": ("py3",)}, []),
        ("ABI tag", "cp312", {"new_abis": ("abi3",)}, []),
        ("Python tag", "cp312", {"new_pythons": ("cp313",), "new_abis": ("none",)}, ["python-narrowed"]),
    ],
)
def test_a_remaining_tag_for_every_python_replaces_removed_tags(
    field: str, went: str, now: dict[str, tuple[str, ...]], rules: list[str]
) -> None:
    assert [name for name, _, _ in found(changed(FieldChange(field, (went,)), **now))] == rules


@pytest.mark.parametrize(
    ("old", "new", "added"),
    [
        (["numpy"], ["numpy", "numpy>=2; python_version > '3.12'"], []),
        (["numpy"], ["numpy>=2"], []),
        (["numpy; extra == 'x'"], ["numpy"], ["numpy"]),
        (["numpy; sys_platform == 'win32'"], ["numpy"], ["numpy"]),
        (["numpy; sys_platform == 'win32'"], ["numpy>=2; sys_platform=='win32'"], []),
        (["numpy; sys_platform == 'win32'"], ["numpy; sys_platform == 'linux'"], ["numpy; sys_platform == 'linux'"]),
        (["numpy"], ["numpy", "typer; extra == 'x'"], []),
    ],
)
def test_a_requirement_is_new_only_if_no_old_requirement_covers_the_same_environments(
    old: list[str], new: list[str], added: list[str]
) -> None:
    [change] = compare_field("Requires-Dist", old, new)
    assert [text for _, _, text in found(changed(change, old_requires=tuple(old)))] == [
        f"requires {text}" for text in added
    ]


def test_a_new_requirement_of_an_extra_is_not_reported() -> None:
    came = ("plot; extra == 'x'", "numpy>=2", "typer")
    assert found(changed(FieldChange("Requires-Dist", ("numpy",), came))) == [
        ("requirement-added", "", "requires typer")
    ]


def test_a_removed_package_is_one_finding() -> None:
    files = (FileChange(status=Status.WENT, old_path="demo/a.py"),)
    package = PackageChange(status=Status.WENT, name="demo", old_version="1.0", files=files, targets_went=("gfx906",))
    assert found(package) == [("package-gone", "", "was removed (version 1.0)")]


def test_ignored_rules_report_nothing() -> None:
    comparison = Comparison(SIDE, SIDE, (went("demo/a.py"),))
    assert find_breaks(comparison, ["module-*"]) == ()


def test_a_pattern_that_matches_no_rule_is_idle() -> None:
    assert idle_patterns(["module-*", "zzz"]) == ["zzz"]
